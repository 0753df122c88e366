import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { initProject } from "./init-project.ts";

const TEMPLATE = "apps/cli/templates/project";

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "konverge-init-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test("names the project after its folder, which may contain a new repository", async () => {
  const folder = join(makeFolder(), "web-operator");
  mkdirSync(join(folder, ".git"), { recursive: true });
  expect(await initProject(folder)).toBe(folder);
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
    readonly name: string;
    readonly dependencies: Record<string, string>;
  };
  expect(manifest.name).toBe("web-operator");
  expect(manifest.dependencies["konverge"]).toMatch(/^\d+\.\d+\.\d+/);
  expect(readFileSync(join(folder, "README.md"), "utf8")).toMatch(/^# web-operator\n/);
});

test.each([
  ["a folder that is not empty", "used", /used is not empty \(mine\.txt\); use a directory/],
  ["a file", "used/mine.txt", /mine\.txt is a file; use a directory that does not exist/],
  ["an invalid package name", "My Operator", /"My Operator" is not a valid npm package name/],
])("refuses %s and changes nothing", async (_what, dir, message) => {
  const folder = makeFolder();
  mkdirSync(join(folder, "used"));
  writeFileSync(join(folder, "used", "mine.txt"), "mine");
  await expect(initProject(join(folder, dir))).rejects.toThrow(message);
  expect(readdirSync(folder, { recursive: true }).map(String).toSorted()).toEqual([
    "used",
    join("used", "mine.txt"),
  ]);
});

// Its types are checked with those of the tests, and in test/e2e by its own `npm run check`.
test("the template uses the package versions of the tests", () => {
  const read = (path: string) =>
    JSON.parse(readFileSync(path, "utf8")) as Record<string, Record<string, string>>;
  const { dependencies, devDependencies } = read(join(TEMPLATE, "package.json"));
  const ours = read("package.json")["devDependencies"];
  const { konverge: _konverge, ...foreign } = { ...dependencies, ...devDependencies };
  expect(ours).toMatchObject(foreign);
});
