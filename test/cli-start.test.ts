import { spawnSync } from "node:child_process";
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
