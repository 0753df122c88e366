import { globSync, readFileSync } from "node:fs";
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

test("the README stays short, and its links lead somewhere", () => {
  const text = read("README.md");
  expect(text.split("\n").length).toBeLessThanOrEqual(150);
  const targets = [...text.matchAll(/\]\(((?:docs|apps|[A-Z]+\.md)[^)#]*)/g)].map(
    ([, path]) => path ?? "",
  );
  expect(targets.filter((path) => globSync(path).length === 0)).toEqual([]);
});

test("docs/errors.md has an anchor for each error code, and no other", () => {
  const anchors = [...read("docs/errors.md").matchAll(/^## (\w+)$/gm)].map(([, code]) => code);
  expect(anchors).toEqual(Object.keys(ERRORS).toSorted());
});
