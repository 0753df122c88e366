import { execFile } from "node:child_process";
import { globSync } from "node:fs";
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const ADDED = "skipped";

/** The files that must decide what a new outcome means to them. */
const DECIDE = [
  "apps/dashboard/browser/parts/status.tsx",
  "libs/api/src/explain/find-attempt-causes.ts",
  "libs/core/src/outcome.ts",
  "libs/queue/src/attempt/end-plan.ts",
  "libs/telemetry/src/reconcile-metrics.ts",
];

/**
 * Returns the files below a folder with type errors. One program for all packages: a build, with a program for each of
 * them, takes five times as long.
 */
async function listErrors(
  copy: string,
  folder: string,
  include: readonly string[],
): Promise<string[]> {
  const base = folder === "." ? "./tsconfig.base.json" : "./tsconfig.json";
  const compilerOptions = {
    composite: false,
    noEmit: true,
    emitDeclarationOnly: false,
    declaration: false,
    declarationMap: false,
    isolatedDeclarations: false,
  };
  const project = join(folder, "tsconfig.one-program.json");
  await writeFile(
    join(copy, project),
    JSON.stringify({
      extends: base,
      compilerOptions,
      include,
      exclude: ["**/*.test.ts", "**/*.test.tsx"],
      references: [],
    }),
  );
  const tsc = join(process.cwd(), "node_modules/typescript/bin/tsc");
  const stdout = await new Promise<string>((resolve) => {
    const options = { cwd: copy, maxBuffer: 2 ** 26 };
    execFile(process.execPath, [tsc, "-p", project], options, (_error, out) => resolve(out));
  });
  const paths = [...stdout.matchAll(/^(\S+?)\(\d+,\d+\): error/gm)].map(([, path = ""]) => path);
  return paths.filter((path) => folder === "." || path.startsWith(folder));
}

test("a new outcome breaks the build in every file that must handle it", async () => {
  const copy = await mkdtemp(join(tmpdir(), "konverge-outcome-"));
  onTestFinished(() => rm(copy, { recursive: true, force: true }));
  const isSource = (path: string) => !/\/(node_modules|dist|public)(\/|$)/.test(path);
  for (const part of ["libs", "apps", "infra", "tsconfig.base.json", "package.json"]) {
    await cp(part, join(copy, part), { recursive: true, filter: isSource });
  }
  // Sibling packages resolve to the copy: their symlinks in node_modules are relative to its root.
  await cp("node_modules/@konverge", join(copy, "node_modules/@konverge"), {
    recursive: true,
    verbatimSymlinks: true,
  });
  const installed = globSync(["node_modules/*", "{apps,libs,infra}/*/node_modules"]);
  for (const folder of installed.filter((name) => name !== "node_modules/@konverge")) {
    await symlink(join(process.cwd(), folder), join(copy, folder));
  }
  const file = join(copy, "libs/core/src/outcome.ts");
  const text = await readFile(file, "utf8");
  const changed = text
    .replace(/^export type Outcome =$/m, `$&\n  | { readonly kind: "${ADDED}" }`)
    .replace(/^export const OUTCOME_KINDS = \[$/m, `$&\n  "${ADDED}",`);
  expect(changed.length - text.length).toBeGreaterThan(2 * ADDED.length);
  await writeFile(file, changed);

  const broken = await Promise.all([
    listErrors(copy, ".", ["apps/*/src/**/*.ts", "libs/*/src/**/*.ts"]),
    listErrors(copy, "apps/dashboard/browser", ["."]),
  ]);
  expect([...new Set(broken.flat())].toSorted()).toEqual(DECIDE);
});
