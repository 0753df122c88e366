import type { AttemptRecord } from "@konverge/records";
import { expect, test } from "vitest";
import { createSuspicion } from "./suspicion.ts";

const polls = { triggers: [{ kind: "schedule" }], outcome: "requeueAfter", writes: [] };
const changed = { ...polls, triggers: [{ kind: "http" }] };

function watchKey() {
  let nowMs = 0;
  const suspicion = createSuspicion(() => nowMs);
  const run = (times: number, record: object = polls) => {
    for (let n = 0; n < times; n++) suspicion.note("a", record as AttemptRecord);
  };
  return { ...suspicion, run, pass: (ms: number) => (nowMs += ms) };
}

test("checks a key after five self-triggered attempts, and then less often", () => {
  const key = watchKey();
  key.run(4);
  expect(key.take()).toEqual([]);
  key.run(1);
  const looksAtMs: number[] = [];
  for (let ms = 0; ms < 60_000; ms += 500) {
    key.run(1);
    if (key.take().length > 0) looksAtMs.push(ms);
    key.pass(500);
  }
  expect(looksAtMs).toEqual([0, 2_000, 6_000, 14_000, 29_000, 44_000, 59_000]);
});

test("an externally triggered attempt clears the suspicion after the pause", () => {
  const key = watchKey();
  key.run(5);
  expect(key.take()).toEqual(["a"]);
  key.pass(2_000);
  key.run(1, changed);
  key.run(4);
  expect(key.take()).toEqual([]);
  key.run(1);
  expect(key.take()).toEqual(["a"]);
});
