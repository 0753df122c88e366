import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const COUNT = `
import { registerHooks } from "node:module";
const seen = new Set();
registerHooks({
  load(url, context, next) {
    const part = /node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url) ?? /(?:apps|libs)\\/[^/]+/.exec(url);
    if (part !== null) seen.add(part[1] ?? part[0]);
    return next(url, context);
  },
});
process.on("exit", () => console.error("loaded " + [...seen].join(" ")));
`;

// Loading engine, API and test kit would triple the startup time.
test.each([
  ["the help", ["--help"]],
  ["a request to a server", ["reconcile", "get", "x", "--server", "http://127.0.0.1:1"]],
  ["the settings", ["config", "print"]],
])("%s loads only required packages", (_title, command) => {
  const count = `data:text/javascript,${encodeURIComponent(COUNT)}`;
  const flags = ["--import", count, "--conditions=@konverge/source", "apps/cli/src/main.ts"];
  const { stderr } = spawnSync(process.execPath, [...flags, ...command], { encoding: "utf8" });
  const loaded = /^loaded (.*)$/m.exec(stderr)?.[1]?.split(" ").toSorted();
  expect(loaded).toEqual([
    "apps/cli",
    "commander",
    "js-yaml",
    "libs/client",
    "libs/contracts",
    "libs/core",
    "libs/records",
    "zod",
  ]);
});

const enginesOf = (path: string) =>
  (JSON.parse(readFileSync(path, "utf8")) as { readonly engines: { readonly node: string } })
    .engines.node;

test.each([["20.20.2"], ["24.11.9"], ["8.17.0"]])(
  "each command rejects Node.js %s at once, with the version to install",
  (version) => {
    const versions = `{ ...process.versions, node: ${JSON.stringify(version)} }`;
    const pretend = `Object.defineProperty(process, "versions", { value: ${versions} });`;
    const flags = ["--import", `data:text/javascript,${encodeURIComponent(pretend)}`];
    const run = (...args: string[]) =>
      spawnSync(process.execPath, [...flags, "apps/cli/bin/konverge.js", ...args], {
        encoding: "utf8",
      });
    for (const args of [["dev"], ["crds", "--config", "x.ts"], ["--version"]]) {
      expect(run(...args)).toMatchObject({
        status: 2,
        stdout: "",
        stderr: expect.stringMatching(
          /^konverge: needs Node\.js 24\.12 or later \(this is [\d.]+\); install it from .*\n$/,
        ) as string,
      });
    }
  },
);

test("the command line, its projects and the workspace require the same Node.js", () => {
  const required = enginesOf("apps/cli/package.json");
  expect(enginesOf("package.json")).toBe(required);
  expect(enginesOf("apps/cli/templates/project/package.json")).toBe(required);
});
