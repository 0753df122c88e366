import { stripVTControlCharacters } from "node:util";
import * as fc from "fast-check";
import type { Overview } from "@konverge/contracts";
import { expect, test } from "vitest";
import { drawTop, pageOf, type TopFrame } from "./draw-top.ts";
import { TOP_VIEWS, type TopData } from "./read-top.ts";
import { parseKeys } from "./top-keys.ts";
import { tableOf } from "./top-rows.ts";
import { FIRST_STATE, pressKey, type TopState } from "./top-state.ts";

const AT_MS = Date.parse("2026-01-01T00:00:10Z");

function controllerOf(name: string): Overview["controllers"][number] {
  return {
    name,
    kind: "NodePool",
    group: "demo.konverge.dev",
    version: "v1",
    resource: "nodepools",
    scope: "Namespaced",
    waiting: 12,
    active: 3,
    delayed: 4,
    workers: 2,
    slots: 20,
    deadLetters: 5,
    minutes: [{ ok: 6, failed: 2, conflict: 0 }],
  };
}

function dataOf(controllers: readonly string[], problems: readonly string[]): TopData {
  return {
    atMs: AT_MS,
    overview: {
      cluster: "default",
      clusters: ["default"],
      at: new Date(AT_MS).toISOString(),
      summary: `${problems.length} errors.`,
      problems: problems.map((message) => ({
        code: "dead_letters",
        level: "error",
        message,
        cause: "quota is 0",
        action: "Raise the quota",
      })),
      controllers: controllers.map(controllerOf),
      workflows: [],
      workers: 2,
      activity: [],
    },
    guards: [],
    workers: [],
    objects: [],
    runs: [],
  };
}

function frameOf(data: TopData, state: Partial<TopState> = {}): TopFrame {
  return { data, state: { ...FIRST_STATE, ...state }, failure: undefined, nowMs: AT_MS + 3_000 };
}

test("shows the summary, the problems, and the waiting and failing keys of controllers", () => {
  const frame = frameOf(dataOf(["node-pool"], ["node-pool: 5 dead-lettered keys"]));
  const lines = drawTop(frame, { columns: 110, rows: 20 }).map(stripVTControlCharacters);
  expect(lines[0]).toBe("konverge top  default  updated 3s ago");
  expect(lines).toContain("error    node-pool: 5 dead-lettered keys");
  const row = lines.findIndex((line) => line.startsWith("CONTROLLER"));
  expect(lines[row]?.split(/ +/)).toEqual(
    "CONTROLLER WAITING RUNNING DELAYED DEAD 5 MIN FAILED P50 P99 OLDEST WORKERS".split(" "),
  );
  expect(lines[row + 1]?.trim().split(/ {2,}/)).toEqual([
    "node-pool",
    "12",
    "3/20",
    "4",
    "5",
    "8",
    "25 %",
    "-",
    "-",
    "-",
    "2",
  ]);
});

test("marks old data when a read fails, and does not show the summary as current", () => {
  const frame = { ...frameOf(dataOf([], [])), failure: "no response" };
  const [first, second] = drawTop(frame, { columns: 110, rows: 20 }).map(stripVTControlCharacters);
  expect(first).toBe("konverge top  default  not updated since 00:00:10 UTC: no response");
  expect(second).toMatch(/^Unknown\. /);
});

const text = fc.string({ unit: "grapheme-ascii", maxLength: 60 });

test("fits any screen, and keeps the selection on it, after any keys", () => {
  fc.assert(
    fc.property(
      fc.record({
        controllers: fc.array(text, { maxLength: 40 }),
        problems: fc.array(text, { maxLength: 12 }),
        columns: fc.integer({ min: 1, max: 200 }),
        rows: fc.integer({ min: 1, max: 60 }),
        keys: fc.array(fc.constantFrom(..."jkgG/?12345ab\r\u001b\u007f\u0006\u0002"), {
          maxLength: 30,
        }),
      }),
      ({ controllers, problems, keys, ...size }) => {
        const data = dataOf(controllers, problems);
        let frame = frameOf(data);
        for (const key of keys.flatMap(parseKeys)) {
          const { rows } = tableOf(data, frame.state);
          const page = pageOf(frame, size);
          frame = {
            ...frame,
            state: pressKey(frame.state, key, { rows: rows.length, page }).state,
          };
          const lines = drawTop(frame, size).map(stripVTControlCharacters);
          expect(lines).toHaveLength(size.rows);
          for (const line of lines) expect(line.length).toBeLessThanOrEqual(size.columns);
          expect(TOP_VIEWS).toContain(frame.state.view);
          const count = tableOf(data, frame.state).rows.length;
          expect(frame.state.selected).toBeLessThanOrEqual(Math.max(0, count - 1));
        }
      },
    ),
  );
});

test("a filter keeps the matching rows until Escape", () => {
  const data = dataOf(["node-pool", "autoscaler"], []);
  const press = (state: TopState, keys: string) =>
    parseKeys(keys).reduce((at, key) => pressKey(at, key, { rows: 2, page: 5 }).state, state);
  const filtered = press(FIRST_STATE, "/auto\r");
  expect(tableOf(data, filtered).rows.map(({ target }) => target)).toEqual([
    { kind: "controller", name: "autoscaler" },
  ]);
  expect(tableOf(data, press(filtered, "\u001b")).rows).toHaveLength(2);
});

test("q quits and Ctrl-C interrupts, also while a filter is typed", () => {
  const effectOf = (state: TopState, key: string) =>
    parseKeys(key).map((each) => pressKey(state, each, { rows: 1, page: 5 }).effect);
  expect(effectOf(FIRST_STATE, "q")).toEqual(["quit"]);
  const typing = { ...FIRST_STATE, isFiltering: true };
  expect(effectOf(typing, "q")).toEqual([undefined]);
  expect(effectOf(typing, "\u0003")).toEqual(["interrupt"]);
});
