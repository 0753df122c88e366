import * as fc from "fast-check";
import { expect, test } from "vitest";
import { packRecord, unpackRecord } from "./pack-record.ts";

const OF = { id: 'c/default/configmaps/n/"a"', worker: "worker-1", startedAtMs: 1_767_225_600_004 };
const parts = fc.oneof(
  fc.json(),
  fc.constantFrom(JSON.stringify(OF.id), '"worker-1"', '","epoch":', ',"waits":{"queueMs":'),
  fc.constantFrom("2026-01-01T00:00:00.004Z", "2026-01-01T00:00:59Z", "\n", "\t"),
);

test("a packed record is restored, whatever it contains", () => {
  fc.assert(
    fc.property(fc.array(parts), (texts) => {
      const record = texts.join("");
      expect(unpackRecord(packRecord(record, OF), OF)).toBe(record);
    }),
  );
});

test("the record of an attempt without writes takes a third of its text", () => {
  const record = JSON.stringify({
    id: `${OF.id}#7`,
    key: OF.id,
    epoch: 7,
    controller: "c",
    attempt: 1,
    worker: OF.worker,
    triggers: [{ kind: "watch", by: "for configmaps", resourceVersion: "123", generation: 2 }],
    requestedAt: "2026-01-01T00:00:00.000Z",
    startedAt: "2026-01-01T00:00:00.004Z",
    finishedAt: "2026-01-01T00:00:00.008Z",
    durationMs: 4,
    waits: { queueMs: 4, rateLimitMs: 0, laneMs: 0, conflictMs: 0, backoffMs: 0 },
    uid: "6f1f8f7e-3f0e-4c3c-9a53-0c1d1a0c9b11",
    generation: 2,
    versionBefore: "123",
    versionAfter: "123",
    outcome: "done",
    writes: [],
    conflicts: [],
    calls: { count: 0, durationMs: 0 },
  });
  const packed = packRecord(record, OF);
  expect(packed.length).toBeLessThan(record.length / 3);
  expect(unpackRecord(packed, OF)).toBe(record);
});

test("a record of an earlier version is read as it is", () => {
  expect(unpackRecord('{"outcome":"lost","epoch":1}', OF)).toBe('{"outcome":"lost","epoch":1}');
});
