import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { differences, type LockedPackage, type LockFile } from "../../infra/setup/lock-file.js";

const SYSTEMS = ["linux", "darwin"].flatMap((os) => ["x64", "arm64"].map((cpu) => ({ os, cpu })));
const lock: LockFile = JSON.parse(readFileSync("package-lock.json", "utf8"));
const packages = Object.entries(lock.packages ?? {});
const lockedNames = new Set(packages.map(([path]) => path.replace(/^.*node_modules\//, "")));

/** The packages of a native one, one per system, by name. */
const systemPackages = (found: LockedPackage) =>
  Object.keys(found.optionalDependencies ?? {}).filter((name) => /linux|darwin/.test(name));

// `node` downloads its binary when it is installed, so it has no such packages.
const families = packages.filter(([, found]) => systemPackages(found).length > 1);

test("finds the native packages", () => {
  const names = families.map(([path]) => path.replace(/^.*node_modules\//, ""));
  expect(names).toEqual(
    expect.arrayContaining(["nx", "oxlint", "oxfmt", "typescript", "rolldown"]),
  );
});

test.each(families)("%s is locked for linux and darwin, x64 and arm64", (_path, found) => {
  const declared = systemPackages(found);
  for (const { os, cpu } of SYSTEMS) {
    const wanted = declared.filter((name) => name.includes(os) && name.includes(cpu));
    expect(wanted, `no package for ${os} ${cpu}`).not.toEqual([]);
    // All of them: some systems have two, for glibc and for musl.
    expect(wanted.filter((name) => !lockedNames.has(name))).toEqual([]);
  }
});

const locked = {
  packages: {
    "": {},
    "libs/core": { version: "0.0.0" },
    "node_modules/@konverge/core": { resolved: "libs/core", link: true },
    "node_modules/zod": { version: "4.6.7" },
    "node_modules/only-darwin": { version: "1.0.0", optional: true },
  },
};
const installed = (changes: Record<string, LockedPackage | undefined>): LockFile => {
  const all = { ...locked.packages, "node_modules/only-darwin": undefined, ...changes };
  return {
    packages: Object.fromEntries(Object.entries(all).filter(([, found]) => found)) as Record<
      string,
      LockedPackage
    >,
  };
};

test("ignores an optional package for another system", () => {
  expect(differences(locked, installed({}))).toEqual([]);
});

test.each([
  ["a missing package", { "node_modules/zod": undefined }],
  ["another version", { "node_modules/zod": { version: "4.6.6" } }],
])("reports %s", (_title, changes) => {
  expect(differences(locked, installed(changes))).toEqual(["node_modules/zod"]);
});

test("reports a workspace that became a copy", () => {
  const changes = { "node_modules/@konverge/core": { version: "0.0.0" } };
  expect(differences(locked, installed(changes))).toEqual(["node_modules/@konverge/core"]);
});
