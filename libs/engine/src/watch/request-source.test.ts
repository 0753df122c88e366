import type { ApiObject, ObjectMeta } from "@konverge/core";
import type { RequestOptions, WorkQueue } from "@konverge/queue";
import { expect, test } from "vitest";
import { defineController } from "../define/define-controller.ts";
import type { Log } from "../define/log.ts";
import { createRequestSource } from "./request-source.ts";

const Pool = {
  group: "demo.konverge.dev",
  version: "v1",
  kind: "Pool",
  resource: "pools",
  scope: "Namespaced",
} as const;
const controller = defineController({
  name: "pool",
  for: Pool,
  reconcile: async () => undefined,
  cleanup: async () => undefined,
});
const silent: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silent,
};

/** Only asks are of interest here; what the queue makes of them is tested on a real Redis. */
function setUp() {
  const asked: (RequestOptions | undefined)[] = [];
  const queue: Pick<WorkQueue, "cluster" | "request"> = {
    cluster: "default",
    request: async (_key, _trigger, how) => {
      asked.push(how);
      return { id: "", key: "", number: 1, coalesced: false };
    },
  };
  const source = createRequestSource(controller, queue as WorkQueue, {
    log: silent,
    isSensitive: () => false,
  });
  return { source, asked };
}
const pool = (metadata: Partial<ObjectMeta> = {}): ApiObject => ({
  apiVersion: "demo.konverge.dev/v1",
  kind: "Pool",
  metadata: { name: "a", namespace: "demo", uid: "1", generation: 1, ...metadata },
});
const deleted = { deletionTimestamp: "2026-01-01T00:00:00Z" };

test("what is found at start and at a resync waits behind events, except deletions, which are no news", async () => {
  const { source, asked } = setUp();
  for (const object of [pool(), pool(deleted)]) {
    await source.onOwnKind({ kind: "added", initial: true, object, seen: {} });
    await source.resync(object, { reason: "resync interval", seen: {} });
  }
  expect(asked).toEqual([
    { class: "resync" },
    { class: "resync" },
    { class: "event", news: false },
    { class: "event", news: false },
  ]);
});

test("the own finalizer is no news when it comes, and news when somebody takes it; foreign ones always are", async () => {
  const { source, asked } = setUp();
  const bare = pool();
  const own = pool({ finalizers: [controller.finalizer] });
  const foreign = pool({ finalizers: ["example.com/x"] });
  const change = async (previous: ApiObject, object: ApiObject) => {
    asked.length = 0;
    await source.onOwnKind({ kind: "changed", initial: false, seen: {}, object, previous });
    return asked.length;
  };
  expect(await change(bare, own)).toBe(0);
  expect(await change(own, bare)).toBe(1);
  expect(await change(bare, foreign)).toBe(1);
  expect(await change(own, pool({ ...own.metadata, ...deleted }))).toBe(1);
});
