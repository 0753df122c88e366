import { openRestoreWatch, type RecordedProgress, type RestoreWatch } from "@konverge/queue";
import { afterEach, expect, test } from "vitest";
import {
  progressKeys,
  restoreKey,
  tokensRestoreKey,
} from "../../../libs/queue/src/restore/restore-state.ts";
import { CLUSTER, useQueues } from "./queue-harness.ts";

/** What a worker holds after gaps of its checks, and after a restore of one part of the data. */

const harness = useQueues();
const MINUTE_MS = 60_000;
const opened: RestoreWatch[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((watch) => watch.close()));
});

async function start(recorded?: RecordedProgress) {
  const recordedNow: RecordedProgress[] = [];
  const watch = openRestoreWatch({
    redis: { url: harness.url, deadlineMs: MINUTE_MS },
    prefix: harness.prefix,
    cluster: CLUSTER,
    shards: 2,
    workerId: "worker",
    record: async (progress) => void recordedNow.push(progress),
    onError: () => undefined,
    onChanged: () => undefined,
  });
  opened.push(watch);
  await watch.start(recorded);
  return { held: watch.held, recorded: recordedNow[0] };
}

const parts = () => progressKeys(harness.prefix, CLUSTER, 2);
/** Sets the progress of a part to a time before now. */
async function setBack(part: string, ms: number): Promise<void> {
  await harness.redis.hset(part, { keys: Date.now() - ms, runs: Date.now() - ms });
}

test("a check that ended before it reached the queues holds nothing later", async () => {
  expect(await start()).toMatchObject({ held: [] });
  for (const part of parts()) await setBack(part, 10 * MINUTE_MS);
  // The progress of the cluster is recent, as after a check that was cut off.
  expect(await start()).toMatchObject({ held: [] });
  const [first = ""] = parts();
  expect(Number(await harness.redis.hget(first, "keys"))).toBeGreaterThan(Date.now() - MINUTE_MS);
});

test("a part that is older than the record of the same data holds the cluster", async () => {
  const { recorded } = await start();
  expect(recorded).toMatchObject({ id: expect.any(String) });
  const [, second = ""] = parts();
  await setBack(second, 10 * MINUTE_MS);
  expect((await start({ ...recorded!, isInUse: true })).held).toEqual([
    "keys",
    "runs",
    "pauses",
    "guard",
  ]);
});

test("the record of other data holds nothing", async () => {
  await start();
  for (const part of parts()) await setBack(part, 10 * MINUTE_MS);
  const other = { id: "other", progressMs: Date.now() - 5 * MINUTE_MS, isInUse: true };
  expect((await start(other)).held).toEqual([]);
});

test("a late check does not set the progress of a queue back", async () => {
  await start();
  const [first = ""] = parts();
  const ahead = Date.now() + 10 * MINUTE_MS;
  await harness.redis.hset(first, { keys: ahead });
  expect((await start()).held).toEqual([]);
  expect(Number(await harness.redis.hget(first, "keys"))).toBe(ahead);
});

test("the progress of tokens is not behind that of a cluster whose clock is ahead", async () => {
  await start();
  const ahead = Date.now() + 10 * MINUTE_MS;
  await harness.redis.hset(restoreKey(harness.prefix, CLUSTER), { progress: ahead });
  await start();
  const tokens = await harness.redis.hget(tokensRestoreKey(harness.prefix), "progress");
  expect(Number(tokens)).toBe(ahead);
});
