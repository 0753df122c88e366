import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { findTouchedTests, isCommit, listChangedFiles, UNSEEN } from "./changed-tests.ts";

/** A workspace of two packages, a program that a test spawns, and a test over everything. */
const FILES: Readonly<Record<string, string>> = {
  "libs/core/package.json": `{"name":"@konverge/core","exports":{".":{"@konverge/source":"./src/index.ts"}},"dependencies":{"@konverge/queue":"*"}}`,
  "libs/core/src/index.ts": `export { age } from "./age.ts";`,
  "libs/core/src/age.ts": "/** See docs/ages.md. */ export const age = 1;",
  "libs/core/src/age.test.ts": `import { age } from "./age.ts";`,
  "libs/core/src/other.test.ts": "",
  "libs/queue/package.json": `{"name":"@konverge/queue","exports":{".":{"@konverge/source":"./src/index.ts"}}}`,
  "libs/queue/src/index.ts": `import { age } from "@konverge/core"; const script = new URL("scripts/begin.lua", import.meta.url);`,
  "libs/queue/src/scripts/begin.lua": "return 1",
  "apps/cli/src/main.ts": `await import("./commands/run.ts");`,
  "apps/cli/src/commands/run.ts": `import "@konverge/queue";`,
  "docs/ages.md": "",
  "docs/first-steps.md": "",
  "infra/helm/chart/values.yaml": "a: 1",
  "test/docs.test.ts": "",
  "test/e2e/run.test.ts": `spawn("npm", ["run", "demo"]);`,
  "test/integration/queue.test.ts": `const CHILD = new URL("queue-child.ts", import.meta.url);`,
  "test/integration/queue-child.ts": `import "@konverge/queue";`,
  "test/integration/chart.test.ts": `read("infra/helm/chart"); blocksOf("first-steps.md");`,
  "package-lock.json": "{}",
};
const files = Object.keys(FILES);

let root = "";
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "konverge-changed-"));
  for (const [file, text] of Object.entries(FILES)) write(file, text);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(file: string, text: string): void {
  mkdirSync(dirname(join(root, file)), { recursive: true });
  writeFileSync(join(root, file), text);
}

const touched = (...changed: string[]) => findTouchedTests(root, changed, files);

test.each([
  [
    "an imported file, across packages and processes",
    "libs/core/src/age.ts",
    ["libs/core/src/age.test.ts", "test/e2e/run.test.ts", "test/integration/queue.test.ts"],
  ],
  [
    "a file that is read at run time",
    "libs/queue/src/scripts/begin.lua",
    ["test/e2e/run.test.ts", "test/integration/queue.test.ts"],
  ],
  [
    "a program that a test spawns",
    "test/integration/queue-child.ts",
    ["test/integration/queue.test.ts"],
  ],
  ["a program behind an npm script", "apps/cli/src/commands/run.ts", ["test/e2e/run.test.ts"]],
  [
    "a file of a folder that a test names",
    "infra/helm/chart/values.yaml",
    ["test/integration/chart.test.ts"],
  ],
  ["a page that a comment names", "docs/ages.md", []],
  ["a page that a test names", "docs/first-steps.md", ["test/integration/chart.test.ts"]],
  ["a test itself", "libs/core/src/other.test.ts", ["libs/core/src/other.test.ts"]],
])("a change of %s runs the tests that depend on it", (_, changed, expected) => {
  expect(touched(changed)).toEqual(expect.arrayContaining(["test/docs.test.ts", ...expected]));
  expect(touched(changed)).toHaveLength(expected.length + 1);
});

test("no change runs nothing, and a change of the dependencies runs everything", () => {
  expect(touched()).toEqual([]);
  expect(touched("package-lock.json")).toBeUndefined();
});

test("a deleted file affects the files that still name it", () => {
  rmSync(join(root, "test/integration/queue-child.ts"));
  const left = files.filter((file) => file !== "test/integration/queue-child.ts");
  expect(findTouchedTests(root, ["test/integration/queue-child.ts"], left)).toContain(
    "test/integration/queue.test.ts",
  );
});

test("lists what was committed since a commit, edited, added and deleted", () => {
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@t", ...args], { cwd: root });
  git("init", "-q");
  git("add", "-A");
  git("commit", "-qm", "one");
  write("libs/core/src/age.ts", "export const age = 2;");
  git("commit", "-qam", "two");
  write("apps/cli/src/main.ts", "");
  write("test/new.test.ts", "");
  rmSync(join(root, "test/docs.test.ts"));
  const since = (ref: string) => [...listChangedFiles(root, ref)].toSorted();
  const uncommitted = ["apps/cli/src/main.ts", "test/docs.test.ts", "test/new.test.ts"];
  expect(since("HEAD")).toEqual(uncommitted);
  expect(since("HEAD~1")).toEqual([
    "apps/cli/src/main.ts",
    "libs/core/src/age.ts",
    ...uncommitted.slice(1),
  ]);
  expect(isCommit(root, "HEAD~1")).toBe(true);
  expect(isCommit(root, "queue")).toBe(false);
});

test("every explicit edge connects existing files", () => {
  for (const path of UNSEEN.flat()) expect(existsSync(path), path).toBe(true);
});
