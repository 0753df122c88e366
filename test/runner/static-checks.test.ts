import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { STATIC_CHECKS } from "./static-checks.ts";

interface Manifest {
  readonly nx: { readonly includedScripts: readonly string[] };
}
interface NxSettings {
  readonly targetDefaults: Readonly<Record<string, { readonly inputs: readonly unknown[] }>>;
  readonly namedInputs: Readonly<Record<string, readonly unknown[]>>;
}
const read = (file: string): unknown => JSON.parse(readFileSync(file, "utf8"));

test("npm run check caches each of its parts, and the unit tests depend on every file", () => {
  const parts = [...STATIC_CHECKS, "test:unit"];
  expect((read("package.json") as Manifest).nx.includedScripts).toEqual(parts);
  const { targetDefaults, namedInputs } = read("nx.json") as NxSettings;
  for (const part of parts) expect(targetDefaults[part]).toMatchObject({ cache: true });
  expect(targetDefaults["test:unit"]?.inputs).toContain("workspace");
  expect(namedInputs["workspace"]).toContain("{workspaceRoot}/**/*");
});
