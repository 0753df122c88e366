import { expect, test } from "vitest";
import { timelineOf } from "./run-timeline.ts";

const iso = (seconds: number) => new Date(seconds * 1_000).toISOString();
const execution = (worker: string, from: number, to: number, lost = false) => ({
  worker,
  lost,
  startedAtMs: from * 1_000,
  endedAtMs: to * 1_000,
});

test("a step that a worker died in belongs to both, and takes from where the first began", () => {
  const rows = timelineOf(
    [
      { name: "look", kind: "step", startedAt: iso(10), at: iso(11), attempts: 1 },
      { name: "upgrade", kind: "step", startedAt: iso(21), at: iso(22), attempts: 1 },
      { name: "soak", kind: "sleep", startedAt: iso(23), at: iso(30), until: iso(30) },
      { name: "approve", kind: "signal", startedAt: iso(30), at: iso(40), by: "ann" },
    ],
    [execution("b", 20, 24), execution("a", 10, 20, true), execution("a2", 40, 41)],
  );
  expect(rows.map(({ step, workers, tookMs }) => [step, workers, tookMs])).toEqual([
    ["look", ["a"], 1_000],
    ["upgrade", ["a", "b"], 11_000],
    ["soak", ["b"], 7_000],
    ["approve", ["a2"], 10_000],
  ]);
  expect(rows.map(({ tries, by }) => [tries, by])).toEqual([
    [1, undefined],
    [1, undefined],
    [undefined, undefined],
    [undefined, "ann"],
  ]);
});
