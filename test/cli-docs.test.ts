import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { commandTree } from "../apps/cli/src/commands/command-tree.ts";
import { createProgram } from "../apps/cli/src/create-program.ts";
import { EXIT_CODES } from "../apps/cli/src/process/exit-codes.ts";

const page = readFileSync("docs/cli.md", "utf8");
const tree = commandTree(createProgram());

test("docs/cli.md has a row for exactly the executable commands", () => {
  const rows = [...page.matchAll(/^\| `konverge ([a-z -]+)` /gm)].map(([, path]) => path);
  const doing = tree.filter(({ path, commands }) => path !== "" && commands.length === 0);
  // `worker` is executable itself.
  expect(rows.toSorted()).toEqual([...doing.map(({ path }) => path), "worker"].toSorted());
});

test("docs/cli.md has the exit codes of --help", () => {
  const rows = [...page.matchAll(/^\| (\d+) +\| (.*?) +\|/gm)].map(([, code, meaning]) => [
    Number(code),
    meaning,
  ]);
  expect(rows).toEqual(EXIT_CODES);
});

test("examples use existing commands and options", () => {
  const lines = page.split("\n").filter((line) => line.startsWith("konverge "));
  expect(lines).not.toEqual([]);
  for (const line of lines) {
    const words = line.split(" ").slice(1);
    const node = tree.find(
      ({ path }) =>
        path === words.slice(0, path.split(" ").length).join(" ") &&
        path !== "" &&
        tree.every((other) => !other.path.startsWith(`${path} `)),
    );
    expect(node, line).toBeDefined();
    const known = node?.options.flatMap(({ long, short }) => [long, short]) ?? [];
    expect(words.filter((word) => /^--?[a-z]/.test(word) && !known.includes(word))).toEqual([]);
  }
});

test("changing commands have --dry-run, printing commands have every format", () => {
  const long = (path: string) =>
    tree.find((node) => node.path === path)?.options.map((option) => option.long) ?? [];
  const changing = tree.filter(({ path }) =>
    /enqueue|cancel|pause$|resume|release|isolate|reset|set-rate/.test(path),
  );
  expect(changing).toHaveLength(13);
  for (const { path } of changing) expect(long(path)).toContain("--dry-run");
  for (const { path, options } of tree) {
    const output = options.find((option) => option.long === "--output");
    // Manifests are only for kubectl.
    if (output === undefined || /^(crds|manifests)$/.test(path)) continue;
    expect(output.choices, path).toEqual(["table", "json", "jsonl", "yaml", "name"]);
  }
});
