import { appendFileSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ChangeLog } from "./change-log.ts";
import { ObjectStore } from "./object-store.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "konverge-change-log-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const object = (name: string, content = "") => ({ metadata: { name }, data: { content } });
/** Opens the directory, runs a step, and continues with the state that a crash leaves: nothing is flushed or closed. */
function session<T>(work: (store: ObjectStore) => T): T {
  const changeLog = new ChangeLog(folder);
  const result = work(new ObjectStore({ changeLog }));
  const left = mkdtempSync(join(tmpdir(), "konverge-change-log-"));
  cpSync(folder, left, { recursive: true });
  rmSync(folder, { recursive: true });
  folder = left;
  return result;
}
const contents = (store: ObjectStore) =>
  store
    .table("things")
    .list()
    .map(({ key, version }) => [key, version]);

test("objects, deletions and the version survive", () => {
  session((store) => {
    const table = store.table("things");
    store.put(table, "a", object("a"));
    store.put(table, "b", object("b"));
    store.put(table, "a", object("a", "changed"));
    store.remove(table, "b", object("b"));
  });
  session((store) => {
    expect(contents(store)).toEqual([["a", 4]]);
    expect(store.version).toBe(5);
    expect(store.put(store.table("things"), "c", object("c")).version).toBe(6);
  });
});
test("drops a truncated line and continues the log after it", () => {
  session((store) => store.put(store.table("things"), "a", object("a")));
  appendFileSync(join(folder, "log.jsonl"), '{"v":3,"t":"things","k":"b","o":{"meta');
  session((store) => {
    expect(contents(store)).toEqual([["a", 2]]);
    store.put(store.table("things"), "c", object("c"));
  });
  session((store) => expect(contents(store).map(([key]) => key)).toEqual(["a", "c"]));
});
test("integers beyond 2^53 keep their digits", () => {
  const line = '{"v":2,"t":"things","k":"a","o":{"metadata":{"name":"a"},"n":9007199254740993}}\n';
  writeFileSync(join(folder, "log.jsonl"), line);
  session((store) => {
    const [stored] = store.table("things").list();
    expect(stored?.text).toContain("9007199254740993");
  });
});
test("a long log becomes a snapshot; changes in both count once", () => {
  const large = "x".repeat(1024 * 1024);
  session((store) => {
    const table = store.table("things");
    for (let round = 0; round < 20; round++) store.put(table, "a", object("a", large + round));
    store.put(table, "b", object("b"));
    store.remove(table, "b", object("b"));
  });
  expect(readFileSync(join(folder, "snapshot.jsonl"), "utf8")).toContain('"k":"a"');
  // As if the process had died between writing the snapshot and emptying the log.
  const stale = '{"v":2,"t":"things","k":"old","o":{"metadata":{"name":"old"}}}\n';
  const log = join(folder, "log.jsonl");
  writeFileSync(log, stale + readFileSync(log, "utf8"));
  session((store) => {
    expect(contents(store)).toEqual([["a", 21]]);
    expect(store.version).toBe(23);
  });
});
test("versions from before a restart have expired", () => {
  session((store) => {
    for (const key of ["a", "b", "c"]) store.put(store.table("things"), key, object(key));
  });
  session((store) => {
    const { history } = store.table("things");
    expect(history.since(2)).toBeUndefined();
    expect(history.since(4)).toEqual([]);
  });
});
test("rejects a directory that a live server uses, and takes over that of a dead one", () => {
  const first = new ChangeLog(folder);
  expect(() => new ChangeLog(folder)).toThrow(/in use by process/);
  first.close();
  writeFileSync(join(folder, "lock"), "999999999");
  new ChangeLog(folder).close();
});
test("takes over a lock with its own process ID from an earlier process, as in a container", () => {
  writeFileSync(join(folder, "lock"), String(process.pid));
  expect(() => new ChangeLog(folder).close()).not.toThrow();
});
test("rejects an invalid complete line with its position", () => {
  writeFileSync(join(folder, "log.jsonl"), '{"v":2,"t":"things","k":"a"}\n{"v":\n');
  expect(() => session(() => undefined)).toThrow(/log\.jsonl:2 is damaged: restore/);
});
