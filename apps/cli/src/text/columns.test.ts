import { expect, test } from "vitest";
import { columns } from "./columns.ts";

const ROWS = [
  ["NAME", "PHASE", "NOTE"],
  ["a-rather-long-name-of-a-pool", "idle", "the reason that somebody gave"],
  ["blue", "dead", "-"],
];
const widest = (text: string) => Math.max(...text.split("\n").map((line) => line.length));

test("does not cut without a terminal", () => {
  expect(columns(ROWS)).toContain(
    "a-rather-long-name-of-a-pool  idle   the reason that somebody gave",
  );
});

test("cuts prose first, then the middle of the longest names", () => {
  expect(columns(ROWS, { width: 60 })).toContain(
    "a-rather-long-name-of-a-pool  idle   the reason tha",
  );
  const narrow = columns(ROWS, { width: 45 });
  expect(widest(narrow)).toBeLessThanOrEqual(45);
  expect(narrow).toMatch(/^a-rather-lo…-of-a-pool  idle   the reason th…$/m);
  expect(narrow).toMatch(/\nblue +dead +-$/);
});

test("wraps the last column between words, below its start", () => {
  const text = "the reason that somebody gave in the incident channel";
  const rows = [
    ["error", text],
    ["", `  cause: ${text}`],
    ["", `  next step: ${"x".repeat(60)} now`],
  ];
  const wrapped = columns(rows, { width: 40, wraps: true, hasHead: false });
  expect(wrapped).toBe(
    [
      "error  the reason that somebody gave in",
      "         the incident channel",
      "         cause: the reason that somebody",
      "           gave in the incident channel",
      "         next step:",
      `           ${"x".repeat(60)}`,
      "           now",
    ].join("\n"),
  );
  expect(columns(rows, { wraps: true, hasHead: false }).split("\n")).toHaveLength(3);
});

test("replaces control characters", () => {
  expect(columns([["a\u001B[2J"]])).toBe("a?[2J");
});
