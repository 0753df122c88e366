import { spawnSync } from "node:child_process";
import { readReferences, type UnseenEdge } from "./reference-graph.ts";

const TEST = /\.test\.tsx?$/;

/** A change of these can break any test. */
const WHOLE = ["package-lock.json", "tsconfig.base.json", "test/vitest.config.ts"];
/** Tests over the whole repository (layers, docs, OpenAPI, log messages), which take seconds in total. */
const ALWAYS = /^test\/[^/]+\.test\.ts$/;
/** `npm run demo`, example files by name, pages that the API serves, and pages of the docs that tests open there. */
export const UNSEEN: readonly UnseenEdge[] = [
  ["test/e2e/", "apps/cli/src/main.ts"],
  ["test/e2e/", "infra/setup/"],
  ["apps/cli/src/", "apps/examples/"],
  ["libs/api/src/", "apps/dashboard/"],
  ["test/e2e/dashboard/dashboard-demo.test.ts", "docs/outages.md"],
  ["test/e2e/dashboard/incident.test.ts", "docs/dashboard.md"],
];
/** Programs that run the others. They do not depend on the paths that they name. */
const LEAVES = ["infra/setup/commands.js"];

/**
 * Finds the test files that reach a changed file, over imports and the paths in strings. `undefined` means all tests.
 * @param changed paths from the root of the repository, deleted files included
 */
export function findTouchedTests(
  root: string,
  changed: readonly string[],
  files: readonly string[] = listFiles(root),
): readonly string[] | undefined {
  if (changed.some((file) => WHOLE.includes(file))) return undefined;
  if (changed.length === 0) return [];
  // A deleted file is a node too, because files that still name it are affected.
  const graph = readReferences(root, [...new Set([...files, ...changed])], UNSEEN);
  const targets = new Set(changed);
  const touches = new Map<string, boolean>();
  const reaches = (test: string): boolean => {
    const seen = new Set([test]);
    const queue = [test];
    for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
      if (targets.has(file) || touches.get(file) === true) return true;
      if (touches.get(file) === false || LEAVES.includes(file)) continue;
      for (const next of graph.referencesOf(file)) {
        if (seen.has(next) || TEST.test(next)) continue;
        seen.add(next);
        queue.push(next);
      }
    }
    for (const file of seen) touches.set(file, false);
    return false;
  };
  return files.filter((file) => TEST.test(file) && (ALWAYS.test(file) || reaches(file)));
}

/**
 * Lists the files that differ from `ref`: committed since their common ancestor, edited, and new.
 * @throws Error if git has no such commit
 */
export function listChangedFiles(root: string, ref: string): readonly string[] {
  const base = git(root, "merge-base", ref, "HEAD")[0] ?? ref;
  return [
    ...git(root, "diff", "--name-only", "--no-renames", base),
    ...git(root, "ls-files", "--others", "--exclude-standard"),
  ];
}

/** Reports whether git has a commit of this name. */
export function isCommit(root: string, ref: string): boolean {
  return (
    spawnSync("git", ["rev-parse", "--verify", "--quiet", `${ref}^{commit}`], { cwd: root })
      .status === 0
  );
}

function listFiles(root: string): readonly string[] {
  return git(root, "ls-files", "--cached", "--others", "--exclude-standard");
}

function git(root: string, ...args: readonly string[]): string[] {
  const { status, stdout, stderr, error } = spawnSync("git", [...args], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
  });
  if (status !== 0) throw new Error(`git ${args.join(" ")} failed: ${error?.message ?? stderr}`);
  return stdout.split("\n").filter((line) => line !== "");
}
