import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { PAGES } from "./pages.ts";

const EXPORTS = /^export (?:type )?\{([^}]*)\}/gm;

test("konverge exports every type and function of docs/reference", () => {
  const exported = new Set(
    ["apps/cli/src/index.ts", "apps/cli/src/testing/index.ts"].flatMap(namesExportedBy),
  );
  expect(exported.size).toBeGreaterThan(150);
  const listed = Object.values(PAGES).flatMap(({ of }) => of.map(({ name }) => name));
  expect(listed.filter((name) => !exported.has(name))).toEqual([]);
});

function namesExportedBy(file: string): string[] {
  return [...readFileSync(file, "utf8").matchAll(EXPORTS)].flatMap(([, list = ""]) =>
    list.split(",").map((entry) => entry.trim().replace(/^type /, "")),
  );
}
