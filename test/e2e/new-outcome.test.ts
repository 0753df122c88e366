import { spawnSync } from "node:child_process";
import { globSync } from "node:fs";
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const ADDED = "skipped";

/** The files that must decide what a new outcome means to them. */
const DECIDE = [
  "apps/dashboard/browser/parts/status.tsx",
  "libs/core/src/outcome.ts",
  "libs/queue/src/attempt/end-plan.ts",
  "libs/telemetry/src/reconcile-metrics.ts",
];

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

  const { stdout } = spawnSync(
    process.execPath,
    [join(process.cwd(), "node_modules/typescript/bin/tsc"), "-b", "tsconfig.base.json"],
    { cwd: copy, encoding: "utf8", maxBuffer: 2 ** 26 },
  );
  const broken = [...stdout.matchAll(/^(\S+?)\(\d+,\d+\): error/gm)].map(([, path = ""]) => path);
  expect([...new Set(broken)].toSorted()).toEqual(DECIDE);
});
