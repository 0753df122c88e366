import { defined } from "@konverge/core";
import { expect, test } from "vitest";
import { packRecord, unpackRecord } from "./packed-record.ts";
import type { StepRecord } from "./run-record.ts";

const refs = Array.from({ length: 500 }, (_, n) => ({
  apiVersion: "v1",
  kind: "Pod",
  namespace: "team-a",
  name: `web-${n}`,
  uid: crypto.randomUUID(),
}));

test.each<[string, unknown]>([
  ["nothing", undefined],
  ["a small value", { a: 1 }],
  ["500 references", refs],
  ["a long text", "ü".repeat(100_000)],
  [
    "what cannot be compressed",
    Buffer.from(crypto.getRandomValues(new Uint8Array(20_000))).toString("base64"),
  ],
])("%s is the same after storing it", (_, value) => {
  const record: StepRecord = {
    kind: "step",
    attempts: 1,
    ...defined({ value }),
  };
  const text = packRecord(record);
  const stored = JSON.parse(text) as StepRecord;
  const unpacked = unpackRecord(stored);
  expect(unpacked.record).toEqual(record);
  // The limit of a run counts its values as they are.
  const given = Buffer.byteLength(JSON.stringify(record));
  expect(Math.abs(Buffer.byteLength(text) + unpacked.savedBytes - given)).toBeLessThan(10);
});

test("references need less than half of their bytes, and small records have no mark", () => {
  const record: StepRecord = { kind: "step", value: refs };
  expect(packRecord(record).length).toBeLessThan(JSON.stringify(record).length / 2);
  expect(packRecord({ kind: "step", value: 1 })).toBe('{"kind":"step","value":1}');
});
