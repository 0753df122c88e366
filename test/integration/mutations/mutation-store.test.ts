import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { MutationState } from "@konverge/core";
import { MAX_BATCH, type NewMutation } from "@konverge/mutations";
import {
  LaneFencedError,
  RedisMutationStore,
} from "../../../libs/mutations/src/store/redis-mutation-store.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

const queues = useQueues();
const OBJECTS = ["a", "b"];
const OPEN_STATES: ReadonlySet<MutationState | undefined> = new Set(["waiting", "applying"]);
const HOLDERS = ["one", "two"];

/** What the store must do, in memory. */
class Model {
  readonly states = new Map<string, MutationState>();
  readonly order: string[] = [];
  readonly waiting = new Map<string, string[]>();
  readonly lanes = new Map<string, { holder: string; batch: string[]; plans: string[] }>();
  readonly groups = new Map<string, string>();

  submit(id: string, object: string, group: string): boolean {
    if (this.states.has(id)) return false;
    this.states.set(id, "waiting");
    this.groups.set(id, group);
    this.order.push(id);
    this.waiting.set(object, [...(this.waiting.get(object) ?? []), id]);
    return true;
  }

  take(object: string, holder: string): { batch: string[]; plans: string[] } | undefined {
    const lane = this.lanes.get(object);
    const waiting = this.waiting.get(object) ?? [];
    const held = lane?.batch ?? [];
    if (held.length > 0) {
      const taken = { holder, batch: held, plans: lane?.plans ?? [] };
      this.lanes.set(object, taken);
      return taken;
    }
    const group = this.groups.get(waiting[0] ?? "");
    const end = waiting.findIndex((id) => this.groups.get(id) !== group);
    const batch = waiting.slice(0, Math.min(MAX_BATCH, end === -1 ? waiting.length : end));
    if (batch.length === 0) {
      this.lanes.delete(object);
      return undefined;
    }
    this.waiting.set(object, waiting.slice(batch.length));
    for (const id of batch) this.states.set(id, "applying");
    const taken = { holder, batch, plans: [] };
    this.lanes.set(object, taken);
    return taken;
  }

  journal(object: string, holder: string, plan: string): boolean {
    const lane = this.lanes.get(object);
    if (lane?.holder !== holder || lane.batch.length === 0) return false;
    lane.plans = [plan];
    return true;
  }

  /** Ends the first mutations of the batch. */
  settle(object: string, holder: string, count: number): "fenced" | boolean {
    const lane = this.lanes.get(object);
    if (lane?.holder !== holder) return "fenced";
    for (const id of lane.batch.slice(0, count)) this.states.set(id, "applied");
    lane.batch = lane.batch.slice(count);
    lane.plans = [];
    if (lane.batch.length > 0 || (this.waiting.get(object) ?? []).length > 0) return false;
    this.lanes.delete(object);
    return true;
  }

  cancel(id: string): string {
    const state = this.states.get(id);
    if (state === undefined) return "missing";
    if (state === "applying") return "applying";
    if (state !== "waiting") return "ended";
    this.states.set(id, "cancelled");
    for (const [object, ids] of this.waiting) {
      this.waiting.set(
        object,
        ids.filter((other) => other !== id),
      );
    }
    return "cancelled";
  }
}

const object = fc.constantFrom(...OBJECTS);
const holder = fc.constantFrom(...HOLDERS);
const id = fc.integer({ min: 0, max: 30 }).map(String);
const call = fc.oneof(
  fc.record({
    kind: fc.constant("submit" as const),
    ids: fc.uniqueArray(id, { minLength: 1, maxLength: 6 }),
    object,
    isStatus: fc.boolean(),
  }),
  fc.record({ kind: fc.constant("take" as const), object, holder }),
  fc.record({ kind: fc.constant("journal" as const), object, holder, plan: id }),
  fc.record({
    kind: fc.constant("settle" as const),
    object,
    holder,
    count: fc.integer({ min: 1, max: 4 }),
  }),
  fc.record({ kind: fc.constant("cancel" as const), id }),
  fc.record({ kind: fc.constant("list" as const), limit: fc.integer({ min: 1, max: 7 }) }),
);
type Call = typeof call extends fc.Arbitrary<infer T> ? T : never;

function mutationOf(mutationId: string, name: string, isStatus: boolean): NewMutation {
  return {
    id: mutationId,
    object: {
      group: "",
      version: "v1",
      kind: "Thing",
      resource: "things",
      namespace: "default",
      name,
    },
    changes: [{ kind: "set", path: "/status/a", value: 1 }],
    ...(isStatus ? { subresource: "status" as const } : {}),
  };
}

/** Makes a call on both sides, and compares the answers. */
async function compare(store: RedisMutationStore, model: Model, one: Call): Promise<void> {
  const keyOf = (name: string) => `mutations/default/things/default/${name}`;
  const fenced = async <T>(run: () => Promise<T>) => {
    try {
      return await run();
    } catch (error) {
      if (error instanceof LaneFencedError) return "fenced" as const;
      throw error;
    }
  };
  switch (one.kind) {
    case "submit": {
      const given = one.ids.map((mutationId) => mutationOf(mutationId, one.object, one.isStatus));
      const answers = await store.submit(given);
      const created = answers.map((answer) => "created" in answer && answer.created);
      const group = String(one.isStatus);
      expect(created).toEqual(one.ids.map((each) => model.submit(each, one.object, group)));
      return;
    }
    case "take": {
      const batch = await store.take(keyOf(one.object), one.holder);
      const found = batch && {
        batch: batch.mutations.map((mutation) => mutation.id),
        plans: batch.plans.map((plan) => plan.id),
      };
      const expected = model.take(one.object, one.holder);
      expect(found).toEqual(expected && { batch: expected.batch, plans: expected.plans });
      return;
    }
    case "journal": {
      const plans = [{ id: one.plan, verdicts: [] }];
      const answer = await fenced(() => store.journal(keyOf(one.object), one.holder, plans));
      expect(answer !== "fenced").toBe(model.journal(one.object, one.holder, one.plan));
      return;
    }
    case "settle": {
      const ids = model.lanes.get(one.object)?.batch.slice(0, one.count) ?? [];
      const verdicts = new Map(ids.map((each) => [each, { outcome: "applied" as const }]));
      const settle = () =>
        fenced(() => store.settle(keyOf(one.object), one.holder, { verdicts, plans: [] }));
      const expected = model.settle(one.object, one.holder, one.count);
      expect(await settle()).toBe(expected);
      // Repeated after a lost reply.
      const isForgotten = expected === true && ids.length === 0;
      if (expected !== "fenced") expect(await settle()).toBe(isForgotten ? "fenced" : expected);
      return;
    }
    case "cancel":
      expect(await store.cancel(one.id, undefined)).toBe(model.cancel(one.id));
      return;
    case "list": {
      const page = await store.list({ limit: one.limit });
      const newest = model.order.toReversed().slice(0, one.limit);
      expect(page.mutations.map((view) => [view.id, view.state])).toEqual(
        newest.map((each) => [each, model.states.get(each)]),
      );
    }
  }
}

test(`the store behaves as its model in random orders of calls (seed ${seed})`, async () => {
  let serial = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(call, { minLength: 5, maxLength: 60 }), async (calls) => {
      const store = new RedisMutationStore({
        call: (run) => run(queues.redis),
        prefix: `${queues.prefix}:${(serial += 1)}`,
        cluster: "default",
        retentionMs: 60_000,
      });
      const model = new Model();
      for (const one of calls) await compare(store, model, one);
      const ids = [...model.states.keys()];
      const views = await store.get(ids);
      expect(views.map((view) => view?.state)).toEqual(ids.map((each) => model.states.get(each)));
      const open = ids.filter((each) => OPEN_STATES.has(model.states.get(each)));
      const texts = await Promise.all(
        open.map((each) => queues.redis.hstrlen(store.names.mutation(each), "text")),
      );
      const bytes = Number(await queues.redis.get(store.names.bytes));
      expect(bytes).toBe(texts.reduce((sum, length) => sum + length, 0));
    }),
    { seed, numRuns: isLongRun ? 1_000 : 100 },
  );
});

test("forgets mutations after the retention, and refuses more than 10,000 waiting ones of an object", async () => {
  const store = new RedisMutationStore({
    call: (run) => run(queues.redis),
    prefix: queues.prefix,
    cluster: "default",
    retentionMs: 0,
  });
  await store.submit([mutationOf("old", "a", false)]);
  await store.cancel("old", undefined);
  await expect
    .poll(async () => {
      await store.sweep();
      return await store.get(["old"]);
    })
    .toEqual([undefined]);
  expect((await store.list({})).mutations).toEqual([]);
  for (let part = 0; part < 10; part += 1) {
    const given = Array.from({ length: 1_000 }, (_, at) => mutationOf(`${part}-${at}`, "b", false));
    await store.submit(given);
  }
  expect(
    await store.submit([mutationOf("more", "b", false), mutationOf("other", "a", false)]),
  ).toEqual([
    { id: "more", refused: "queue_full" },
    { id: "other", created: true },
  ]);
});

test("refuses mutations while those that have not ended use 256 MiB", async () => {
  const store = new RedisMutationStore({
    call: (run) => run(queues.redis),
    prefix: queues.prefix,
    cluster: "default",
    retentionMs: 60_000,
  });
  await queues.redis.set(store.names.bytes, 268_435_456);
  expect(await store.submit([mutationOf("one", "a", false)])).toEqual([
    { id: "one", refused: "memory_full" },
  ]);
  await queues.redis.del(store.names.bytes);
  expect(await store.submit([mutationOf("one", "a", false)])).toEqual([
    { id: "one", created: true },
  ]);
});

test("a batch has 512 KiB besides its first mutation", async () => {
  const store = new RedisMutationStore({
    call: (run) => run(queues.redis),
    prefix: queues.prefix,
    cluster: "default",
    retentionMs: 60_000,
  });
  const value = "x".repeat(200_000);
  const given = Array.from({ length: 5 }, (_, at): NewMutation => ({
    ...mutationOf(`large-${at}`, "a", false),
    changes: [{ kind: "set", path: "/data/a", value }],
  }));
  await store.submit(given);
  const batch = await store.take("mutations/default/things/default/a", "one");
  expect(batch?.mutations.map((mutation) => mutation.id)).toEqual([
    "large-0",
    "large-1",
    "large-2",
  ]);
});
