import type { ApiObject, JsonObject } from "@konverge/core";
import {
  createAttemptSecrets,
  MUST_READ,
  startFrom,
  Urgency,
  type ChangeDraft,
  type MutateResult,
} from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import type { ObjectLanes } from "@konverge/lanes";
import { expect, test } from "vitest";
import { createLaneWriter, type LaneWriterOptions } from "./lane-writer.ts";
import { createWriteGroups } from "./write-group.ts";

const target = {
  type: ConfigMap,
  name: { namespace: "default", name: "hot" },
  subresource: undefined,
  uid: undefined,
  read: MUST_READ,
};
const turn = { carried: undefined, waitedMs: 0, leave: () => undefined };

function setUp(enter: ObjectLanes["enter"]) {
  const groups = createWriteGroups();
  const object = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "hot" },
    count: 0,
  };
  const client: Pick<LaneWriterOptions["client"], "isSensitive"> = { isSensitive: () => false };
  return {
    object,
    writerOf: (signal: AbortSignal) =>
      createLaneWriter({
        client: client as LaneWriterOptions["client"],
        lanes: { enter, close: () => undefined },
        groups,
        signal,
        isOpen: () => true,
        trace: { noteLane: () => undefined, secrets: createAttemptSecrets() },
        priority: "event",
        urgency: new Urgency(),
      }),
    commit: async (change: ChangeDraft<ApiObject>): Promise<MutateResult<ApiObject>> => {
      await change(object);
      return { kind: "updated", object, tries: 1, lost: 0, beforeVersion: "1" };
    },
    countUp: (draft: ApiObject) => {
      const counter = draft as unknown as JsonObject;
      counter["count"] = Number(counter["count"]) + 1;
    },
  };
}

test("P3: does not write a change again that another writer included while it got the lane", async () => {
  // Admits all writers at once.
  const { object, writerOf, commit, countUp } = setUp(async () => turn);
  const inLane = writerOf(new AbortController().signal);
  await Promise.all(Array.from({ length: 5 }, () => inLane(target, countUp, commit)));
  expect(object.count).toBe(5);
});

test("P3: does not write a change again that an attempt aborted during its write had included", async () => {
  let entering = 0;
  const { object, writerOf, commit, countUp } = setUp((_lane, signal) => {
    entering += 1;
    if (entering !== 2) return Promise.resolve(turn);
    return new Promise((_resolve, reject) => {
      signal?.addEventListener("abort", () => reject(new Error("stopped waiting")));
    });
  });
  const leader = new AbortController();
  const leading = writerOf(leader.signal)(target, countUp, async (change) => {
    await commit(change);
    leader.abort(new Error("the lease was lost"));
    throw leader.signal.reason;
  });
  const along = writerOf(new AbortController().signal)(target, countUp, commit);
  const [led, came] = await Promise.allSettled([leading, along]);
  expect(led).toMatchObject({ reason: { message: "the lease was lost" } });
  // The write may have been applied, so the other attempt must fail as if it had made the call itself.
  expect(came).toMatchObject({ status: "rejected", reason: { code: "kube_unreachable" } });
  expect(object.count).toBe(2);
});

test("does not pass an object to a writer that uses another version of its kind", async () => {
  const carried = { apiVersion: "v2", kind: "ConfigMap", metadata: { name: "hot" } };
  const { object, writerOf, countUp } = setUp(async () => ({ ...turn, carried }));
  const inLane = writerOf(new AbortController().signal);
  const bases: unknown[] = [];
  const write = async (_change: unknown, basis: unknown) => {
    bases.push(basis);
    return { kind: "updated", object, tries: 1, lost: 0, beforeVersion: "1" } as const;
  };
  await inLane(target, countUp, write);
  await inLane({ ...target, type: { ...ConfigMap, version: "v2" } }, countUp, write);
  expect(bases).toEqual([target.read, startFrom(carried, target.read)]);
});
