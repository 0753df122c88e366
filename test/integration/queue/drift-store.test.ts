import { closeRedis, openProducer, type RedisClient } from "@konverge/redis";
import * as fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createDriftStore, type Drift } from "../../../libs/queue/src/drift/drift-store.ts";
import { PATIENT_MS } from "../../support/patient.ts";
import { useQueues } from "./queue-harness.ts";
import { seed } from "../../support/test-run.ts";

const queues = useQueues();
/** With all permissions, for calls that wait for Redis as long as it takes. */
let redis: RedisClient;
beforeAll(() => {
  redis = openProducer({ url: process.env["REDIS_URL"] ?? "", deadlineMs: PATIENT_MS });
});
afterAll(() => closeRedis(redis));

const keyOf = (id: number) => `widgets/default/widgets.test.konverge.dev/default/w-${id}`;
const at = "2026-01-01T00:00:00.000Z";
const driftOf = (id: number): Drift => {
  return { key: keyOf(id), controller: "widgets", since: at, at, summary: {}, changes: [] };
};

function open(prefix: string) {
  const root = `${prefix}:{default}/drift`;
  return { root, store: createDriftStore(redis, { prefix, cluster: "default" }) };
}

test("plans that were removed do not count towards the memory limit", async () => {
  const { store } = open(queues.prefix);
  const record = "x".repeat(8_000_000);
  await store.store(driftOf(0), record);
  for (let id = 1; id <= 8; id += 1) {
    await store.store(driftOf(id), record);
    await store.remove(keyOf(id));
  }
  await store.store(driftOf(9), record);
  expect((await store.readPlan(keyOf(0)))?.length).toBe(record.length);
  expect(await store.count("widgets")).toBe(2);
});

const OBJECTS = 5;
type Step =
  | { readonly kind: "store"; readonly id: number; readonly bytes: number }
  | { readonly kind: "remove" | "expire"; readonly id: number };
const idArbitrary = fc.nat(OBJECTS - 1);
const stepArbitrary: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant("store"),
    id: idArbitrary,
    bytes: fc.integer({ min: 1, max: 50 }),
  }),
  fc.record({ kind: fc.constantFrom("remove", "expire"), id: idArbitrary }),
);

test("the sum of the sizes is that of the stored plans, and removals leave no keys of plans", async () => {
  console.log(`KONVERGE_TEST_SEED=${seed}`);
  let runs = 0;
  let expired = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(stepArbitrary, { minLength: 1, maxLength: 40, size: "max" }),
      async (steps) => {
        const { root, store } = open(`${queues.prefix}-${(runs += 1)}`);
        const stored = new Map<number, string>();
        /** Bytes of expired plans, which the next call of `store` forgets. */
        const late = new Map<number, number>();
        for (const step of steps) {
          const { id } = step;
          if (step.kind === "store") {
            stored.set(id, "x".repeat(step.bytes));
            late.clear();
            await store.store(driftOf(id), stored.get(id) ?? "");
          } else if (step.kind === "remove") {
            stored.delete(id);
            late.delete(id);
            await store.remove(keyOf(id));
          } else if (stored.has(id)) {
            // As Redis does when the retention ends.
            expired += 1;
            late.set(id, stored.get(id)?.length ?? 0);
            stored.delete(id);
            await redis.del(`${root}/plans/${keyOf(id)}`);
            await redis.zadd(`${root}/plan-ages`, 1, keyOf(id));
          }
          const bytes = [...stored.values()].map(({ length }) => length).concat(...late.values());
          const sum = Number((await redis.hget(`${root}/plan-sizes`, "")) ?? 0);
          expect(sum).toBe(bytes.reduce((total, one) => total + one, 0));
          expect(await redis.zcard(`${root}/plan-ages`)).toBe(stored.size + late.size);
          for (let each = 0; each < OBJECTS; each += 1) {
            expect(await store.readPlan(keyOf(each))).toBe(stored.get(each));
          }
        }
        await store.store(driftOf(0), "last");
        for (let id = 0; id < OBJECTS; id += 1) await store.remove(keyOf(id));
        expect(await redis.keys(`${root}/*`)).toEqual([`${root}/plan-sizes`]);
        expect(await redis.hgetall(`${root}/plan-sizes`)).toEqual({ "": "0" });
      },
    ),
    { seed, numRuns: 40 },
  );
  expect(expired).toBeGreaterThan(20);
});
