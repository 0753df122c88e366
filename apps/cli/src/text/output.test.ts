import { load } from "js-yaml";
import { expect, test, vi } from "vitest";
import { columns } from "./columns.ts";
import { print, type Output } from "./output.ts";

const CANARY = "a\u001B[2J\u009B31m\u202Eb\r\n\u0007c";
const STEERING = /[\p{Cc}\u202A-\u202E]/u;

function printed(output: Output): string {
  const spy = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  print(output, {
    document: { name: CANARY, [CANARY]: 1 },
    names: [CANARY],
    table: () => columns([["NAME"], [CANARY], [{ text: CANARY, style: "red" }]]),
  });
  const text = spy.mock.calls.map(([chunk]) => String(chunk)).join("");
  spy.mockRestore();
  return text;
}

test.each(["table", "json", "jsonl", "yaml", "name"] as const)(
  "P12: escapes control characters with -o %s",
  (output) => {
    const lines = printed(output).split("\n");
    expect(lines.filter((line) => STEERING.test(line))).toEqual([]);
    expect(lines.join("")).toContain("c");
  },
);

test("keeps escaped characters", () => {
  expect(JSON.parse(printed("json"))).toEqual({ name: CANARY, [CANARY]: 1 });
  expect(load(printed("yaml"))).toEqual({ name: CANARY, [CANARY]: 1 });
});
