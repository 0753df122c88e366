import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { describeSettings } from "@konverge/contracts";
import { HINTS } from "@konverge/records";
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

test("docs/dependencies.md justifies exactly the existing dependencies", () => {
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
  expect(rowsOf("Run time", "Development")).toEqual([...foreign].toSorted());
});

test("docs/dependencies.md lists exactly the Go modules that programs of tests require", () => {
  const required = globSync("{infra,test}/**/go.mod").flatMap((file) => {
    const text = read(file).split("\nreplace")[0] ?? "";
    const lines = [...text.matchAll(/^(?:\t|require )([\w./-]+) v\S+$/gm)];
    const tools = [...text.matchAll(/^tool ([\w./-]+\/v\d+)\//gm)];
    return [...lines, ...tools].map(([, name = ""]) => name);
  });
  expect(rowsOf("Go modules")).toEqual([...new Set(required)].toSorted());
});

test("docs/dependencies.md lists exactly the Python packages that tests install", () => {
  const required = globSync("test/**/requirements.txt").flatMap((file) =>
    [...read(file).matchAll(/^([\w-]+)==\S+$/gm)].map(([, name = ""]) => name),
  );
  expect(rowsOf("Python packages")).toEqual([...new Set(required)].toSorted());
});

/** Returns the names in the first column of the tables of docs/dependencies.md below the headings. */
function rowsOf(...headings: readonly string[]): readonly string[] {
  const sections = read("docs/dependencies.md").split("\n## ");
  const text = sections
    .filter((section) => headings.includes(section.split("\n")[0] ?? ""))
    .join("\n");
  const lines = text.split("\n").filter((line) => line.startsWith("| `"));
  const names = lines.flatMap((line) =>
    [...(line.split("|")[1] ?? "").matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name),
  );
  return names.toSorted();
}

test("the README stays short", () => {
  expect(read("README.md").split("\n").length).toBeLessThanOrEqual(111);
});

test("docs/guarantees.md names test files that exist", () => {
  const files = globSync("{test,libs,apps}/**/*.test.ts", {
    exclude: ["**/node_modules", "**/dist"],
  }).map((path) => basename(path, ".test.ts"));
  const named = [...read("docs/guarantees.md").matchAll(/^Tests: .*?(?=\n\n)/gms)].flatMap(
    ([list]) =>
      [...list.replaceAll(/\([^)]*\)/g, "").matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name),
  );
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter((name) => !files.includes(name))).toEqual([]);
});

test("docs/operator-questions.md answers each question, with a page and tests that exist", () => {
  const files = globSync("{test,libs,apps}/**/*.test.ts", {
    exclude: ["**/node_modules", "**/dist"],
  }).map((path) => basename(path, ".test.ts"));
  const disasters = globSync("test/game-day/disasters/*.ts").map((path) => basename(path, ".ts"));
  const rows = read("docs/operator-questions.md")
    .split(/^- /m)
    .slice(1)
    .map((row) => row.split("\n\n")[0]?.replaceAll(/\s+/g, " ").trim());
  expect(rows.length).toBeGreaterThan(40);
  for (const row of rows) {
    expect(row).toMatch(
      /^\*\*[^*]+\?\*\* [^[\]]+\. See \[[^\]]+\]\([^)]+\)\. (Tests: `.+`\.|Not tested\.)$/,
    );
    const [, tests = ""] = / Tests: (.*)$/.exec(row ?? "") ?? [];
    const named = [...tests.matchAll(/`(game-day )?([^`]+)`/g)];
    const unknown = named.filter(
      ([, isDisaster, name = ""]) => !(isDisaster === undefined ? files : disasters).includes(name),
    );
    expect(unknown.map(([name]) => name)).toEqual([]);
  }
});

const PAGES = globSync(["*.md", "docs/**/*.md", "{apps,libs,infra,test}/*/README.md"]);
test.each(PAGES)("the links of %s resolve", (page) => {
  const text = read(page).replaceAll(/```.*?```/gs, "");
  const links = [...text.matchAll(/\]\((?![a-z]+:)([^)\s#]*)(?:#([^)\s]*))?\)/g)].filter(
    ([, path = "", anchor]) => {
      const target = path === "" ? page : join(dirname(page), path);
      return !existsSync(target) || (anchor !== undefined && !anchorsOf(target).includes(anchor));
    },
  );
  expect(links.map(([link]) => link)).toEqual([]);
  // Files named without a link.
  const named = [...text.matchAll(/`((?:apps|docs|infra|libs|test)\/[\w./-]+)`/g)];
  expect(named.map(([, path = ""]) => path).filter((path) => !existsSync(path))).toEqual([]);
});

/** Left out by the style guide. The glossary has the words to use instead. */
const LEFT_OUT =
  /\b(?:(?:elected )?producers?|wish(?:es|ed)?|asked for|orders|news|dead(?!-?letter|\s+letter)|put off|turn-taking|whose turn|carried|hand(?:s|ed) on|fights?|who (?:won|lost)|in the way|in circles|shel(?:f|ves)|activations?|stuck|untaken|hand-over|cures?|(?:is|are|was|were) told|tells?|(?:goes?|going|works?) on|what is none|is not there|nobody|somebody|whoever|anew|a person)\b/gi;
const PROSE = globSync(["*.md", "docs/**/*.md", "{apps,libs,infra,test}/**/README.md"]).filter(
  (page) => !page.includes("node_modules"),
);

test.each(PROSE)("%s follows the style guide's rules for words, cells and lines", (page) => {
  // The demo prints its own table.
  const text = read(page).replace(/<!-- demo-output -->.*<!-- \/demo-output -->/s, "");
  const prose = text
    .replaceAll(/^( *)```.*?^\1```/gms, "")
    .replaceAll(/`[^`]*`/g, "`code`")
    .replaceAll(/\]\([^)]*\)/g, "]");
  // The glossary may mention a word to explain another one.
  if (page !== "docs/glossary.md") {
    expect([...prose.matchAll(LEFT_OUT)].map(([word]) => word)).toEqual([]);
  }
  const rows = text.split("\n").filter((line) => line.startsWith("|"));
  const cells = rows.flatMap((row) => row.split(/(?<!\\)\|/).map((cell) => cell.trim()));
  expect(cells.filter((cell) => cell.length > 120)).toEqual([]);
  const lines = text
    // Printed output is quoted unchanged, and cron has no continuation lines.
    .replaceAll(/^```(?:text|crontab)$.*?^```$/gms, "")
    .split("\n")
    // A URL cannot be wrapped.
    .filter((line) => line.length > 120 && !/^\S*https?:\S*$/.test(line.trim()));
  expect(lines).toEqual([]);
});

/** Returns GitHub's anchor for a heading. */
function anchorsOf(page: string): string[] {
  return [...read(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

const PARTS = globSync("{apps,infra,libs}/*").filter((path) => statSync(path).isDirectory());
test.each(PARTS)("%s/README.md describes the part, its imports and its guarantees", (part) => {
  const text = read(join(part, "README.md"));
  expect(text).toMatch(/^# \S+\n\n[\s\S]+?\n\n\*\*Imports:\*\* [\s\S]+?\n\n\*\*Promises:\*\* \S/);
  const [, imports = ""] = /\*\*Imports:\*\* ([\s\S]*?)\n\n/.exec(text) ?? [];
  if (!existsSync(join(part, "package.json")) || imports.startsWith("every library")) return;
  const { dependencies = {} } = JSON.parse(read(join(part, "package.json"))) as {
    readonly dependencies?: Record<string, string>;
  };
  const imported = Object.keys(dependencies)
    .filter((name) => name.startsWith("@konverge/"))
    .map((name) => name.replace(/^@konverge\/(infra-)?/, ""));
  expect(imported.filter((name) => !new RegExp(`\\b${name}\\b`).test(imports))).toEqual([]);
});

test("docs/errors.md has an anchor for exactly the error codes", () => {
  const anchors = [...read("docs/errors.md").matchAll(/^## (\w+)$/gm)].map(([, code]) => code);
  expect(anchors).toEqual(Object.keys(ERRORS).toSorted());
});

test("docs/hints.md has a section with a fix in code for exactly the hints", () => {
  const sections = read("docs/hints.md").split(/^## /m).slice(1);
  expect(sections.map((section) => section.split("\n", 1)[0])).toEqual(Object.keys(HINTS));
  for (const section of sections) {
    expect(section).toMatch(/\*\*Symptom\*\*.*\*\*Effect\*\*.*\*\*Fix\*\*.*```ts\n/s);
  }
});

test("docs/what-articles-say.md names a test for each claim, and a claim for each test of the lessons", () => {
  const claims = read("docs/what-articles-say.md").split(/^### /m).slice(1);
  const named = claims.map(
    (claim) => /^Test: `([^`]+)`$/m.exec(claim)?.[1] ?? `no test in: ${claim}`,
  );
  const titles = (path: string, pattern: RegExp) =>
    [...read(path).matchAll(pattern)].map(([, title = ""]) => title);
  const own = titles("test/integration/engine/lessons.test.ts", /^ *test\("(.*)", async/gm);
  const cases = globSync("test/conformance/cases/*.ts").flatMap((path) =>
    titles(path, /^    name: "(.*)",$/gm),
  );
  expect(named.filter((name) => !own.includes(name) && !cases.includes(name))).toEqual([]);
  expect(own.filter((title) => !named.includes(title))).toEqual([]);
  const lessons = titles("test/conformance/cases/lessons.ts", /^    name: "(.*)",$/gm);
  expect(lessons.filter((title) => !named.includes(title))).toEqual([]);
});

test.each(["docs/production.md", "docs/scaling.md", "docs/outages.md"])(
  "%s names only existing metrics",
  (page) => {
    const known = read("docs/metrics.md");
    const named = [...read(page).matchAll(/\bkonverge_[a-z_]+/g)].map(([name]) => name);
    const missing = named.filter((name) => !known.includes(`\`${name.replace(/_bucket$/, "")}{`));
    expect(named).not.toEqual([]);
    expect(missing.filter((name) => !known.includes(name))).toEqual([]);
  },
);

test("docs/README.md has a line for each page", () => {
  const index = read("docs/README.md");
  const pages = globSync("docs/*.md").map((path) => path.replace("docs/", ""));
  expect(pages.filter((page) => page !== "README.md" && !index.includes(`](${page})`))).toEqual([]);
});
