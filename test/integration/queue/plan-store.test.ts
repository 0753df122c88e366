import { closeRedis, openProducer, type RedisClient } from "@konverge/redis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  beginPlan,
  holdPlan,
  readPlan,
  readPlansOf,
  requestPlan,
  storePlan,
  type PlanPlace,
} from "../../../libs/queue/src/plans/plan-store.ts";
import { PATIENT_MS } from "../../support/patient.ts";
import { useQueues } from "./queue-harness.ts";

const queues = useQueues();
/** With all permissions, for calls that wait for Redis as long as it takes. */
let redis: RedisClient;
beforeAll(() => {
  redis = openProducer({ url: process.env["REDIS_URL"] ?? "", deadlineMs: PATIENT_MS });
});
afterAll(() => closeRedis(redis));
const key = "widgets/default/widgets.test.konverge.dev/default/blue";
const place = (): PlanPlace => ({ prefix: queues.prefix, cluster: "default" });
const ids = async (of: string) =>
  (await readPlansOf(redis, place(), of)).map((text) => text.split(" ")[0]);

describe("the store of plans", () => {
  test("keeps the last 20 plans of an object", async () => {
    for (let id = 0; id < 25; id += 1)
      await storePlan(redis, place(), { id: `${id}`, key }, `${id} record`);
    expect(await ids(key)).toEqual(Array.from({ length: 20 }, (_, index) => `${24 - index}`));
    expect(await readPlan(redis, place(), "4")).toBeUndefined();
    expect(await readPlan(redis, place(), "5")).toEqual({
      state: "ended",
      record: "5 record",
    });
  });

  test("M2: deletes the oldest plans of a cluster beyond its memory limit", async () => {
    const size = 8_000_000;
    for (let id = 0; id < 12; id += 1) {
      await storePlan(
        redis,
        place(),
        { id: `${id}`, key: `${key}-${id}` },
        `${id} ${"x".repeat(size)}`,
      );
    }
    const kept = await Promise.all(
      Array.from({ length: 12 }, (_, id) => readPlan(redis, place(), `${id}`)),
    );
    expect(kept.map((plan) => plan !== undefined)).toEqual(
      Array.from({ length: 12 }, (_, id) => id >= 4),
    );
    const sizes = await redis.hgetall(`${queues.prefix}:{default}/plan-sizes`);
    const { "": sum, ...each } = sizes;
    expect(Object.values(each).reduce((total, one) => total + Number(one), 0)).toBe(Number(sum));
    expect(Number(sum)).toBeLessThanOrEqual(64 * 1_048_576);
    // A plan that is stored twice counts once.
    await storePlan(redis, place(), { id: "11", key: `${key}-11` }, "short");
    expect(await redis.hget(`${queues.prefix}:{default}/plan-sizes`, "")).toBe(
      `${Number(sum) - Number(each["11"]) + 5}`,
    );
  });

  test("M3: a plan whose worker has died is lost, and stored if the worker was only suspended", async () => {
    await requestPlan(redis, place(), { id: "1", key, controller: "widgets", by: "ada" });
    expect(await readPlan(redis, place(), "1")).toEqual({ state: "waiting" });
    const claim = { id: "1", run: "run-1" };
    expect(await beginPlan(redis, place(), claim)).toBe(true);
    const release = holdPlan(redis, place(), {
      ...claim,
      onError: (error) => expect.unreachable(String(error)),
    });
    expect(await readPlan(redis, place(), "1")).toEqual({ state: "running" });
    const lease = `${queues.prefix}:{default}/plan-leases/1`;
    expect(await redis.pttl(lease)).toBeLessThanOrEqual(30_000);
    release();
    await redis.del(lease);
    expect(await readPlan(redis, place(), "1")).toEqual({ state: "lost" });
    await storePlan(redis, place(), { id: "1", key }, "record");
    expect(await readPlan(redis, place(), "1")).toEqual({ state: "ended", record: "record" });
  });

  test("M4: a waiting plan begins once, also if the call is repeated", async () => {
    await requestPlan(redis, place(), { id: "1", key, controller: "widgets", by: "ada" });
    const begin = (run: string) => beginPlan(redis, place(), { id: "1", run });
    expect(await begin("run-1")).toBe(true);
    // The response was lost.
    expect(await begin("run-1")).toBe(true);
    expect(await begin("run-2")).toBe(false);
    await storePlan(redis, place(), { id: "1", key }, "record");
    expect(await begin("run-1")).toBe(false);
    expect(await begin("run-2")).toBe(false);
    expect(await readPlan(redis, place(), "1")).toEqual({ state: "ended", record: "record" });
    expect(await beginPlan(redis, place(), { id: "2", run: "run-1" })).toBe(false);
  });

  test("M5: readers add a request that no worker has begun to its list again", async () => {
    const root = `${queues.prefix}:{default}`;
    const list = `${root}/fleet-plan-requests/widgets`;
    const request = (id: string) =>
      requestPlan(redis, place(), {
        id,
        key,
        controller: "widgets",
        by: "ada",
        class: "background",
      });
    const idsOf = (entries: readonly string[]) =>
      entries.map((entry) => (JSON.parse(entry) as { id: string }).id);
    const listed = async () => idsOf(await redis.lrange(list, 0, -1));
    /** Ends the time until the next check. */
    const readLate = async (id: string) => {
      await redis.del(`${root}/plan-leases/${id}`);
      return await readPlan(redis, place(), id);
    };
    for (const id of ["1", "2", "3"]) await request(id);
    expect(await readLate("2")).toEqual({ state: "waiting" });
    expect(await listed()).toEqual(["1", "2", "3"]);

    await redis.lpop(list);
    expect(await readPlan(redis, place(), "1")).toEqual({ state: "waiting" });
    expect(await listed()).toEqual(["2", "3"]);
    await Promise.all([readLate("1"), readLate("1")]);
    expect(await listed()).toEqual(["1", "2", "3"]);

    // A worker begins it between the two calls of a reader.
    await redis.lpop(list);
    expect(await beginPlan(redis, place(), { id: "1", run: "run-1" })).toBe(true);
    expect(await readLate("1")).toEqual({ state: "lost" });
    expect(await listed()).toEqual(["2", "3"]);

    // A full list has dropped the oldest.
    for (let id = 4; id < 54; id += 1) await request(`${id}`);
    expect(await readLate("2")).toEqual({ state: "waiting" });
    expect(await listed()).toEqual(Array.from({ length: 50 }, (_, index) => `${index + 4}`));
    await redis.lpop(list);
    await readLate("2");
    expect((await listed()).slice(0, 2)).toEqual(["2", "5"]);
  });
});
