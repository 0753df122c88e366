import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const THROUGH_NPM = "demo -- --workers 0";

test.each([
  [THROUGH_NPM, "--workers"],
  ["demo -- --workers 51", "--workers"],
  ["demo -- --seed x", "--seed"],
  ["demo -- --cluster nonsense", "nonsense"],
  ["demo -- -o xml", "xml"],
  ["demo -- --nonsense", "--nonsense"],
  ["envtest -- --nonsense", "--nonsense"],
  ["bench -- nonsense", "nonsense"],
  ["bench -- --nonsense", "--nonsense"],
  ["conformance -- -o xml", "xml"],
])("npm run %s names the invalid argument, exits with 2 and starts nothing", (line, named) => {
  const temporary = mkdtempSync(join(tmpdir(), "konverge-test-"));
  onTestFinished(() => rmSync(temporary, { recursive: true, force: true }));
  // One line through npm: the scripts of the others differ only in the name.
  const [script = "", ...rest] = line.replace(" -- ", " ").split(" ");
  const [program, args] =
    line === THROUGH_NPM
      ? ["npm", ["run", "--silent", script, "--", ...rest]]
      : [process.execPath, ["infra/setup/main.js", script, ...rest]];
  const { status, stdout, stderr } = spawnSync(program, args, {
    encoding: "utf8",
    env: { ...process.env, TMPDIR: temporary, REDIS_URL: "" },
    // A program that starts anyway is ended, and the test fails.
    timeout: 120_000,
  });
  // The first command in a fresh checkout installs missing parts and prints them.
  const said = stderr.split("\n").filter((text) => !text.startsWith("set-up: "));
  expect(said[0]).toContain(named);
  expect(stdout).toBe("");
  expect(status).toBe(2);
  expect(readdirSync(temporary).filter((name) => name.startsWith("konverge-"))).toEqual([]);
});
