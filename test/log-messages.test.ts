import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

/** A logger call in the source: its level and its possible messages. */
interface LogCall {
  readonly file: string;
  readonly level: string;
  readonly messages: readonly string[];
}

const CALL = /\b\w*log(?:\.(debug|info|warn|error)|\[level\])\(/gi;
const STRING = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`/y;

/** Returns the arguments of the call whose parentheses open at `start`. */
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

test("docs/logs.md lists exactly the messages above debug with their levels", () => {
  const logged = calls
    .filter(({ level }) => level !== "debug")
    .flatMap(({ level, messages }) => messages.map((message) => `${level}: ${message}`));
  const rows = readFileSync("docs/logs.md", "utf8").matchAll(/^\| `([^`]+)`\s*\| (\w+)\s*\|/gm);
  const documented = [...rows].map(([, message, level]) => `${level}: ${message}`);
  expect(documented.toSorted()).toEqual([...new Set(logged)].toSorted());
});
