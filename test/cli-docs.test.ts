import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { commandTree, type CommandNode } from "../apps/cli/src/commands/command-tree.ts";
import { createProgram } from "../apps/cli/src/create-program.ts";
import { EXIT_CODES } from "../apps/cli/src/process/exit-codes.ts";
import { blocksOf } from "./integration/docs/load-block.ts";
import { shellLines } from "./support/shell-lines.ts";

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

/** Lines of the pages that call the command line, each with the words after `konverge`. */
const calls = ["README.md", ...globSync(["docs/*.md", "docs/runbooks/*.md"])].flatMap((path) =>
  blocksOf(path)
    .filter(({ language }) => language === "sh")
    .flatMap(({ text }) => shellLines(text))
    .map((words) => (words.includes("|") ? words.slice(0, words.indexOf("|")) : words))
    .map((words) => [path, words[0] === "npx" ? words.slice(1) : words] as const)
    .filter(([, [program]]) => program === "konverge"),
);

test.each(calls)("%s calls an existing command with existing options: %s", (_, [, ...words]) => {
  const isShort = words[0] === "worker" && words[1]?.startsWith("-") === true;
  const given = isShort ? ["worker", "run", ...words.slice(1)] : words;
  const isCalled = (path: string) => path === given.slice(0, path.split(" ").length).join(" ");
  const leaves = tree.filter(({ path, commands }) => path !== "" && commands.length === 0);
  const node = leaves.find(({ path }) => isCalled(path));
  expect(node).toBeDefined();
  const known = node?.options.flatMap(({ long, short }) => [long, short]) ?? [];
  const options = given.filter((word) => /^--?[a-z]/.test(word));
  expect(options.filter((option) => !known.includes(option.split("=", 1)[0]))).toEqual([]);
  const [fewest, most] = argumentsOf(node?.path ?? "");
  const values = valuesOf(given.slice(node?.path.split(" ").length), node);
  expect(values.length, values.join(" ")).toBeGreaterThanOrEqual(fewest);
  expect(values.length, values.join(" ")).toBeLessThanOrEqual(most);
});

/** Returns the fewest and the most arguments of a command. */
function argumentsOf(path: string): readonly [number, number] {
  const command = path
    .split(" ")
    .reduce<ReturnType<typeof createProgram> | undefined>(
      (parent, name) => parent?.commands.find((child) => child.name() === name),
      createProgram(),
    );
  const all = command?.registeredArguments ?? [];
  const isVariadic = all.some(({ variadic }) => variadic);
  return [all.filter(({ required }) => required).length, isVariadic ? Infinity : all.length];
}

/** Returns the words that are neither options nor their values. Redirections and comments end a call. */
function valuesOf(words: readonly string[], node?: CommandNode): readonly string[] {
  const end = words.findIndex((word) => /^(?:\d?>|<|#|&&?$|;)/.test(word));
  const call = end === -1 ? words : words.slice(0, end);
  const isTaken = (word = "") =>
    node?.options.some(
      ({ long, short, takesValue }) => takesValue && (word === long || word === short),
    ) === true;
  return call.filter((word, index) => !/^--?[a-z]/.test(word) && !isTaken(call[index - 1]));
}

test("changing commands have --dry-run, printing commands have every format", () => {
  const long = (path: string) =>
    tree.find((node) => node.path === path)?.options.map((option) => option.long) ?? [];
  const changing = tree.filter(({ path }) =>
    /^mutate$|enqueue|cancel|pause$|resume|release|isolate|reset|set-rate/.test(path),
  );
  expect(changing).toHaveLength(15);
  for (const { path } of changing) expect(long(path)).toContain("--dry-run");
  for (const { path, options } of tree) {
    const output = options.find((option) => option.long === "--output");
    // Manifests are only for kubectl.
    if (output === undefined || /^(crds|manifests)$/.test(path)) continue;
    expect(output.choices, path).toEqual(["table", "json", "jsonl", "yaml", "name"]);
  }
});
