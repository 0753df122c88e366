import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

/** Licenses that are compatible with Apache-2.0. */
const ACCEPTED = [
  "0BSD",
  "Apache-2.0",
  "BlueOak-1.0.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "ISC",
  "MIT",
  "PSF-2.0",
  "Unlicense",
];

interface LockedPackage {
  readonly license?: string;
  readonly link?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8")) as {
  readonly packages: Readonly<Record<string, LockedPackage>>;
};

/** Returns the installed packages that the CLI and the demo need at run time, by path in the lock file. */
function closure(): Map<string, LockedPackage> {
  const found = new Map<string, LockedPackage>();
  const visit = (path: string) => {
    const locked = packages[path];
    if (locked === undefined || found.has(path)) return;
    found.set(path, locked);
    for (const name of Object.keys({ ...locked.dependencies, ...locked.optionalDependencies })) {
      visit(resolve(path, name));
    }
  };
  visit("apps/cli");
  visit("apps/demo");
  return found;
}

/** Finds a dependency in the folder of its user or above, as Node does. */
function resolve(from: string, name: string): string {
  for (let folder = from; ; folder = folder.replace(/(^|\/)[^/]*$/, "")) {
    const path = `${folder === "" ? "" : `${folder}/`}node_modules/${name}`;
    const locked = packages[path];
    if (locked?.link === true) {
      const target = (locked as { readonly resolved?: string }).resolved;
      if (target !== undefined) return target;
    }
    if (locked !== undefined || folder === "") return path;
  }
}

test("every package that users install has an accepted license", () => {
  const installed = [...closure()].filter(([path]) => path.includes("node_modules/"));
  expect(installed.length).toBeGreaterThan(50);
  const others = installed.filter(([, { license = "none" }]) => !ACCEPTED.includes(license));
  expect(others.map(([path, { license }]) => `${path}: ${license ?? "none"}`)).toEqual([]);
});
