import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

/** A call of a logger in the source: its level, and the messages that it may write. */
interface LogCall {
  readonly file: string;
  readonly level: string;
  readonly messages: readonly string[];
}

const CALL = /\b\w*log(?:\.(debug|info|warn|error)|\[level\])\(/gi;
const STRING = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`/y;

/** What stands between the parentheses that open at `start`, split at its own commas. */
function argumentsAt(text: string, start: number): string[] {
  const parts = [""];
  let depth = 0;
  for (let at = start; at < text.length; at += 1) {
    STRING.lastIndex = at;
    const [literal] = STRING.exec(text) ?? [];
    const piece = literal ?? text.charAt(at);
    if (literal === undefined && /[([{]/.test(piece)) depth += 1;
    if (literal === undefined && /[)\]}]/.test(piece) && (depth -= 1) < 0) return parts;
    if (piece === "," && depth === 0) parts.push("");
    else parts[parts.length - 1] += piece;
    at += piece.length - 1;
  }
  return parts;
}

const calls: LogCall[] = globSync("libs/{api,engine,telemetry,worker}/src/**/*.ts")
  .filter((file) => !file.endsWith(".test.ts"))
  .flatMap((file) => {
    const text = readFileSync(file, "utf8").replaceAll(/^ *(?:\*|\/\/|\/\*\*).*$/gm, "");
    return [...text.matchAll(CALL)].map((call) => {
      const [, ...rest] = argumentsAt(text, call.index + call[0].length);
      const literals = rest.join().match(new RegExp(STRING.source, "g")) ?? [];
      return {
        file,
        level: call[1] ?? "warn",
        messages: literals.map((literal) => literal.slice(1, -1)),
      };
    });
  });

test("every log line has a constant message", () => {
  expect(calls.length).toBeGreaterThan(20);
  expect(calls.filter(({ messages }) => messages.length === 0)).toEqual([]);
});

test("docs/logs.md lists every message above debug with its level, and none that is not there", () => {
  const told = calls
    .filter(({ level }) => level !== "debug")
    .flatMap(({ level, messages }) => messages.map((message) => `${level}: ${message}`));
  const rows = readFileSync("docs/logs.md", "utf8").matchAll(/^\| `([^`]+)`\s*\| (\w+)\s*\|/gm);
  const documented = [...rows].map(([, message, level]) => `${level}: ${message}`);
  expect(documented.toSorted()).toEqual([...new Set(told)].toSorted());
});
