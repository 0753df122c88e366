import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describeSettings } from "@konverge/contracts";
import { ERRORS } from "@konverge/core";
import { expect, test } from "vitest";

const read = (path: string) => readFileSync(path, "utf8");

test("docs/configuration.md lists every setting under its names", () => {
  const text = read("docs/configuration.md");
  const rows = [...text.matchAll(/^\| `(\w+)`\s*\| `(KONVERGE_\w+)`/gm)].map(([, key, env]) => ({
    key,
    env,
  }));
  expect(rows).toEqual(describeSettings().map(({ key, env }) => ({ key, env })));
});

test("docs/dependencies.md justifies every dependency, and none that is not there", () => {
  interface Manifest {
    readonly dependencies?: Record<string, string>;
    readonly devDependencies?: Record<string, string>;
    readonly optionalDependencies?: Record<string, string>;
  }
  const declared = globSync("{package.json,{apps,libs,infra}/*/package.json}").flatMap((file) => {
    const manifest = JSON.parse(read(file)) as Manifest;
    const { dependencies, devDependencies, optionalDependencies } = manifest;
    return Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies });
  });
  const foreign = new Set(
    declared.filter((name) => name !== "konverge" && !name.startsWith("@konverge/")),
  );
  const rows = read("docs/dependencies.md")
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .flatMap((line) =>
      [...(line.split("|")[1] ?? "").matchAll(/`([^`]+)`/g)].map(([, name]) => name),
    );
  expect(rows.toSorted()).toEqual([...foreign].toSorted());
});

test("the README stays short", () => {
  expect(read("README.md").split("\n").length).toBeLessThanOrEqual(150);
});

const PAGES = globSync(["*.md", "docs/**/*.md", "{apps,libs,infra,test}/*/README.md"]);
test.each(PAGES)("the links of %s lead somewhere", (page) => {
  const text = read(page).replaceAll(/```.*?```/gs, "");
  const links = [...text.matchAll(/\]\((?![a-z]+:)([^)\s#]*)(?:#([^)\s]*))?\)/g)].filter(
    ([, path = "", anchor]) => {
      const target = path === "" ? page : join(dirname(page), path);
      return !existsSync(target) || (anchor !== undefined && !anchorsOf(target).includes(anchor));
    },
  );
  expect(links.map(([link]) => link)).toEqual([]);
  // Files that are named without a link.
  const named = [...text.matchAll(/`((?:apps|docs|infra|libs|test)\/[\w./-]+)`/g)];
  expect(named.map(([, path = ""]) => path).filter((path) => !existsSync(path))).toEqual([]);
});

/** As GitHub makes them. */
function anchorsOf(page: string): string[] {
  return [...read(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

test("docs/errors.md has an anchor for each error code, and no other", () => {
  const anchors = [...read("docs/errors.md").matchAll(/^## (\w+)$/gm)].map(([, code]) => code);
  expect(anchors).toEqual(Object.keys(ERRORS).toSorted());
});
