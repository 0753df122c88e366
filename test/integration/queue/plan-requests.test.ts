import { serveObjectReads } from "@konverge/queue";
import { closeRedis, openProducer, type RedisClient } from "@konverge/redis";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import {
  planRequestsKey,
  readPlan,
  requestPlan,
} from "../../../libs/queue/src/plans/plan-store.ts";
import { PACE_MS } from "../../../libs/queue/src/fleet/plan-pace.ts";
import { PATIENT_MS } from "../../support/patient.ts";
import { until } from "../../support/until.ts";
import { useQueues } from "./queue-harness.ts";

const queues = useQueues();
let redis: RedisClient;
beforeAll(() => {
  redis = openProducer({ url: process.env["REDIS_URL"] ?? "", deadlineMs: PATIENT_MS });
});
afterAll(() => closeRedis(redis));

test("plans that users wait for begin before plans of the fleet, and in addition to two of them", async () => {
  const { prefix, target } = queues;
  const place = { prefix, cluster: "default" };
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const request = (id: string, planClass: "interactive" | "background") =>
    requestPlan(redis, place, { id, key: id, controller: "widgets", by: "ada", class: planClass });
  for (const id of ["f1", "f2", "f3", "f4"]) await request(id, "background");
  const stop = serveObjectReads({
    redis: target,
    ...place,
    controllers: ["widgets"],
    plan: ({ id }) => {
      begun.push(id);
      return new Promise((resolve) => ends.set(id, () => resolve("{}")));
    },
    onError: () => undefined,
  });
  onTestFinished(async () => {
    for (const end of ends.values()) end();
    await stop();
  });
  const begins = async (ids: readonly string[]) => {
    await until(`${ids.join(" ")} have begun`, () => begun.length >= ids.length);
    expect(begun).toEqual(ids);
  };
  await begins(["f1", "f2"]);
  for (const id of ["u1", "u2"]) await request(id, "interactive");
  await begins(["f1", "f2", "u1"]);
  ends.get("f1")?.();
  await begins(["f1", "f2", "u1", "u2"]);
  // The next plan of the fleet begins when fewer than two plans run.
  ends.get("u1")?.();
  ends.get("u2")?.();
  await begins(["f1", "f2", "u1", "u2", "f3"]);
  await request("u3", "interactive");
  await begins(["f1", "f2", "u1", "u2", "f3", "u3"]);
});

test("a plan that a user waits for begins before paced plans of the fleet", async () => {
  const { prefix, target } = queues;
  const place = { prefix, cluster: "default" };
  const begun: string[] = [];
  const request = (id: string, planClass: "interactive" | "background") =>
    requestPlan(redis, place, { id, key: id, controller: "widgets", by: "ada", class: planClass });
  const fleet = Array.from({ length: 40 }, (_, index) => `f${index}`);
  for (const id of fleet) await request(id, "background");
  const requested = Promise.withResolvers<undefined>();
  let ended = 0;
  const startedMs = performance.now();
  const stop = serveObjectReads({
    redis: target,
    ...place,
    controllers: ["widgets"],
    attempts: () => ({ active: 0, ended: (ended += 1) }),
    plan: async ({ id }) => {
      begun.push(id);
      if (id === "f1") {
        await request("user", "interactive");
        requested.resolve(undefined);
      }
      if (id !== "f0") await requested.promise;
      return "{}";
    },
    onError: () => undefined,
  });
  onTestFinished(stop);
  await until("all plans have begun", () => begun.length > fleet.length);
  expect(performance.now() - startedMs).toBeGreaterThan((fleet.length - 2) * PACE_MS);
  expect(begun.toSorted()).toEqual([...fleet, "user"].toSorted());
  // Before the request of the user is in Redis, f0, f1 and f2 can begin; two more may already have been taken.
  expect(begun.indexOf("user")).toBeLessThan(6);
});

test("a plan is made although the worker that took its request from Redis never received it", async () => {
  const { prefix, target } = queues;
  const place = { prefix, cluster: "default" };
  const wanted = { id: "1", key: "1", controller: "widgets", by: "ada" };
  await requestPlan(redis, place, wanted);
  const list = planRequestsKey(place, wanted.controller);
  expect(JSON.parse((await redis.lpop(list)) ?? "")).toMatchObject(wanted);
  const stop = serveObjectReads({
    redis: target,
    ...place,
    controllers: ["widgets"],
    plan: async () => "{}",
    onError: () => undefined,
  });
  onTestFinished(stop);
  await until("the plan has ended", async () => {
    const found = await readPlan(redis, place, wanted.id);
    return found?.state === "ended";
  });
});
