import { expect, test } from "vitest";
import { createLostWrites } from "./lost-writes.ts";

const target = { group: "", version: "v1", kind: "", resource: "configmaps", name: "a" };
const entry = (manager: string, time: string, field: string) => ({
  manager,
  operation: "Update",
  time,
  fieldsType: "FieldsV1",
  fieldsV1: { "f:data": { [`f:${field}`]: {} } },
});
const object = (version: string, data: object, managedFields: readonly object[]) =>
  JSON.parse(
    JSON.stringify({ metadata: { name: "a", resourceVersion: version, managedFields }, data }),
  );
const early = "2026-01-01T00:00:00Z";
const base = entry("base", early, "x");
const rival = entry("rival", "2026-01-01T00:01:00Z", "y");
const read = object("1", { x: "1" }, [base]);
const found = object("2", { x: "1", y: "2" }, [base, rival]);
const winners = [{ manager: "rival", operation: "Update", paths: ["data.y"] }];

test("a read after a conflict reveals the winner, by the object that was read before", () => {
  const writes = createLostWrites(() => false);
  writes.noteObject(target, read);
  const record = writes.noteConflict(target, object("1", { own: "1" }, [base]), "1");
  expect(record).toMatchObject({ readVersion: "1", competingWriters: [] });
  writes.noteObject(target, found);
  expect(record).toMatchObject({ foundVersion: "2", competingWriters: winners });
});

test("without an earlier read, the written object is compared, without its own changes and formats", () => {
  const writes = createLostWrites(() => false);
  const ours = { ...base, time: "2026-01-01T00:00:00.000Z" };
  const record = writes.noteConflict(target, object("1", { x: "own" }, [ours]), "1");
  writes.noteObject(target, found);
  expect(record?.competingWriters).toEqual(winners);
});

test("keeps a bounded number of objects", () => {
  const writes = createLostWrites(() => false);
  const first = writes.noteConflict(target, object("1", {}, [base]), "1");
  for (let n = 0; n < 100; n += 1) {
    writes.noteConflict({ ...target, name: `b${n}` }, object("1", {}, []), "1");
  }
  writes.noteObject(target, found);
  expect(first?.foundVersion).toBeUndefined();
});
