import { describe, expect, test } from "vitest";
import type { Outcome } from "@konverge/core";
import { AttemptCancelledError } from "@konverge/queue";
import { expectNothingLeft, hold, keyOf, useQueues, workOn } from "./queue-harness.ts";
import { until } from "../../support/until.ts";

const harness = useQueues();
const done: Outcome = { kind: "done" };
const http = { kind: "http" } as const;
const watch = { kind: "watch" } as const;
const ada = { by: "ada", reason: "a bad release" };
const elsewhere = (name: string) => ({ ...keyOf(name), namespace: "other" });

describe("pause", () => {
  test.each([
    { scope: { kind: "controller" }, held: ["a", "b", "c"] },
    { scope: { kind: "namespace", namespace: "demo" }, held: ["a", "b"] },
    { scope: { kind: "key", key: keyOf("a") }, held: ["a"] },
  ] as const)(
    "P1: $scope.kind holds back $held, and lets all of them go",
    async ({ scope, held }) => {
      const queue = harness.open();
      await queue.control.pause(scope, ada);
      const keys = [keyOf("a"), keyOf("b"), elsewhere("c")];
      for (const key of keys) await queue.request(key, watch);
      const worker = workOn(queue, () => done);
      await expectNothingLeft(harness, queue);
      const runs = () => worker.started.map(({ key }) => key.name).toSorted();
      const free = ["a", "b", "c"].filter((name) => !held.some((other) => other === name));
      expect(runs()).toEqual(free);
      expect(await queue.getKey(keyOf("a"))).toMatchObject({
        phase: "paused",
        requested: 1,
        finished: 0,
        paused: { scope, ...ada },
      });
      expect(await queue.control.listPauses()).toMatchObject([{ scope, ...ada }]);

      expect(await queue.control.resume(scope, ada)).toEqual({ resumed: held.length });
      await until("all ran", () => worker.started.length === 3);
      await expectNothingLeft(harness, queue);
      expect(runs()).toEqual(["a", "b", "c"]);
      expect(await queue.getKey(keyOf("a"))).toMatchObject({ phase: "idle", finished: 2 });
    },
  );

  test("acknowledges a user request on a paused key, which waits", async () => {
    const queue = harness.open();
    await queue.control.pause({ kind: "key", key: keyOf("a") }, ada);
    const worker = workOn(queue, () => done);
    const { id } = await queue.request(keyOf("a"), http, { class: "interactive" });
    await expectNothingLeft(harness, queue);
    expect(await queue.getRequest(id)).toMatchObject({
      phase: "waiting",
      paused: { ...ada, scope: { kind: "key" }, since: expect.stringMatching(/^20.*Z$/) },
    });
    expect(worker.started).toHaveLength(0);
  });

  test("a running attempt ends; its retry waits for the resume", async () => {
    const queue = harness.open();
    const first = hold();
    const worker = workOn(queue, async () => {
      if (worker.started.length > 1) return done;
      await first.wait();
      return { kind: "conflict", error: new Error("409") };
    });
    await queue.request(keyOf("a"), watch);
    await until("the first attempt", () => worker.started.length === 1);
    await queue.control.pause({ kind: "controller" }, ada);
    expect(await queue.getKey(keyOf("a"))).toMatchObject({ phase: "running", paused: ada });
    first.release();
    await expectNothingLeft(harness, queue);
    expect(worker.started[0]?.signal.aborted).toBe(false);
    expect(worker.started).toHaveLength(1);
    await queue.control.resume({ kind: "controller" }, ada);
    await until("the retry", () => worker.started.length === 2);
    expect(worker.started[1]).toMatchObject({ attempt: 2, conflicts: 1 });
  });

  test("only resyncs until the next success make an attempt a resync", async () => {
    const queue = harness.open();
    let fails = 1;
    const worker = workOn(queue, () => {
      fails -= 1;
      return fails < 0 ? done : { kind: "conflict", error: new Error("409") };
    });
    const resync = { kind: "resync" } as const;
    const ended = async (count: number) => {
      await until("the attempts have ended", () => worker.closed.length === count);
      return worker.started.map(({ isResync }) => isResync);
    };
    await queue.request(keyOf("a"), resync, { class: "background" });
    expect(await ended(2)).toEqual([true, true]);
    fails = 1;
    await queue.request(keyOf("a"), watch);
    expect(await ended(4)).toEqual([true, true, false, false]);
    await queue.request(keyOf("a"), resync, { class: "background" });
    expect(await ended(5)).toEqual([true, true, false, false, true]);
  });

  test("an attempt has the times in which its key was parked, also those of earlier attempts", async () => {
    const queue = harness.open();
    const worker = workOn(queue, async () => {
      if (worker.started.length > 1) return done;
      // Before the retry.
      await queue.control.pause({ kind: "controller" }, ada);
      return { kind: "conflict", error: new Error("409") };
    });
    await queue.control.pause({ kind: "controller" }, ada);
    await queue.request(keyOf("a"), watch);
    for (const attempts of [1, 2]) {
      await until("it is parked", async () => (await queue.backlog()).paused === 1);
      await queue.control.resume({ kind: "controller" }, ada);
      await until("it has run", () => worker.started.length === attempts);
    }
    const [first, second] = worker.started;
    expect(first?.pauses).toHaveLength(1);
    expect(second?.pauses.slice(0, 1)).toEqual(first?.pauses);
    for (const { pauses, requestedAtMs, startedAtMs } of worker.started) {
      for (const { fromMs, toMs } of pauses) {
        expect(fromMs).toBeGreaterThanOrEqual(requestedAtMs);
        expect(toMs).toBeGreaterThanOrEqual(fromMs);
        expect(toMs).toBeLessThanOrEqual(startedAtMs);
      }
    }
    await queue.request(keyOf("a"), watch);
    await until("the third attempt", () => worker.started.length === 3);
    expect(worker.started[2]?.pauses).toEqual([]);
  });

  test("P1: the end of a pause keeps a later time of the key", async () => {
    const queue = harness.open();
    await queue.control.pause({ kind: "controller" }, ada);
    const worker = workOn(queue, () => done);
    await queue.request(keyOf("a"), watch);
    const later = Date.now() + 3_600_000;
    await queue.requestAt(keyOf("a"), later);
    await expectNothingLeft(harness, queue);
    await queue.control.resume({ kind: "controller" }, ada);
    await until("the attempt", () => worker.closed.length === 1);
    await expectNothingLeft(harness, queue);
    const nextAt = new Date(later).toISOString();
    expect(await queue.getKey(keyOf("a"))).toMatchObject({ phase: "idle", nextAt });
  });

  test("P1: a worker finishes a resume whose process died after the first step", async () => {
    const queue = harness.open();
    await queue.control.pause({ kind: "controller" }, ada);
    const worker = workOn(queue, () => done);
    for (const name of ["a", "b"]) await queue.request(keyOf(name), watch);
    await expectNothingLeft(harness, queue);
    const root = `${harness.prefix}:{default}`;
    // The effects of the resume so far.
    await harness.redis
      .multi()
      .del(`${root}/pauses/node-pool`)
      .set(`${root}/resuming/node-pool`, "1 ")
      .exec();
    await until("both ran", () => worker.started.length === 2);
  });

  test("reports invalid arguments", async () => {
    const { control } = harness.open();
    const scope = { kind: "controller" } as const;
    await expect(control.pause(scope, { by: " ", reason: "x" })).rejects.toMatchObject({
      code: "invalid_request",
      issues: [{ pointer: "/by" }],
    });
    await expect(control.resume(scope, ada)).rejects.toMatchObject({ code: "not_found" });
    const key = { ...keyOf("a"), controller: "other" };
    await expect(control.pause({ kind: "key", key }, ada)).rejects.toMatchObject({
      code: "invalid_key",
    });
  });
});

describe("cancel", () => {
  test("a cancelled request without others starts no attempt", async () => {
    const queue = harness.open();
    const { id } = await queue.request(keyOf("a"), http, { class: "interactive" });
    expect(await queue.control.cancel(id, ada)).toBe("cancelled");
    expect(await queue.getRequest(id)).toMatchObject({
      phase: "finished",
      outcome: "cancelled",
      attempts: 0,
      error: { code: "cancelled", message: "by ada: a bad release" },
    });
    const worker = workOn(queue, () => done);
    await expectNothingLeft(harness, queue);
    expect(worker.started).toHaveLength(0);
    expect(await queue.control.cancel(id, ada)).toBe("alreadyFinished");
    await expect(queue.control.cancel(`${id}9`, ada)).rejects.toMatchObject({ code: "not_found" });
    const later = await queue.request(keyOf("a"), http);
    await expectNothingLeft(harness, queue);
    expect(worker.started).toHaveLength(1);
    expect(await queue.getRequest(later.id)).toMatchObject({ outcome: "done" });
  });

  test("P1: other requests of the same key still run", async () => {
    const queue = harness.open();
    const mine = await queue.request(keyOf("a"), http);
    const other = await queue.request(keyOf("a"), watch);
    expect(await queue.control.cancel(mine.id, ada)).toBe("detached");
    workOn(queue, () => done);
    await expectNothingLeft(harness, queue);
    expect(await queue.getRequest(mine.id)).toMatchObject({
      phase: "finished",
      outcome: "cancelled",
    });
    expect(await queue.getRequest(other.id)).toMatchObject({ phase: "finished", outcome: "done" });
  });

  test("aborts an attempt in another process if no other request needs it, and does not run its key again", async () => {
    const [queue, elsewhereOpen] = [harness.open(), harness.open()];
    const worker = workOn(queue, async ({ signal }) => {
      if (worker.started.length > 1) return done;
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      return { kind: "cancelled", cause: "person", error: signal.reason as Error };
    });
    const first = await queue.request(keyOf("a"), http);
    await until("the attempt", () => worker.started.length === 1);
    const second = await queue.request(keyOf("a"), watch);
    expect(await elsewhereOpen.control.cancel(first.id, ada)).toBe("aborting");
    await until("the follow-up of the other request", () => worker.started.length === 2);
    await expectNothingLeft(harness, queue);
    const reason: unknown = worker.started[0]?.signal.reason;
    expect(reason).toBeInstanceOf(AttemptCancelledError);
    expect(reason).toMatchObject({ reason: "person" });
    expect(worker.closed.map(({ outcome }) => outcome)).toEqual(["cancelled", "done"]);
    expect(await queue.getRequest(first.id)).toMatchObject({
      phase: "finished",
      outcome: "cancelled",
      attempts: 1,
    });
    expect(await queue.getRequest(second.id)).toMatchObject({ outcome: "done", attempts: 1 });
    expect(await harness.redis.keys(`${harness.prefix}:{default}/aborts/*`)).toEqual([]);
  });

  test("an attempt that fails before the abort is not retried; one that succeeds counts as succeeded", async () => {
    const queue = harness.open();
    const outcomes: Outcome[] = [{ kind: "retry", error: new Error("no") }, done];
    for (const [index, outcome] of outcomes.entries()) {
      const held = hold();
      const worker = workOn(queue, async () => {
        await held.wait();
        return outcome;
      });
      const { id } = await queue.request(keyOf(`${index}`), http);
      await until("the attempt", () => worker.started.length === 1);
      expect(await queue.control.cancel(id, ada)).toBe("aborting");
      held.release();
      await expectNothingLeft(harness, queue);
      expect(worker.started).toHaveLength(1);
      const expected = index === 0 ? "cancelled" : "done";
      expect(await queue.getRequest(id)).toMatchObject({ phase: "finished", outcome: expected });
      await worker.stop();
    }
  });

  test("an attempt that dies during its cancellation is not repeated", async () => {
    const queue = harness.open({ leaseMs: 1_000 });
    const { id } = await queue.request(keyOf("a"), http);
    const dying = workOn(queue, () => new Promise<Outcome>(() => undefined));
    await until("the attempt", () => dying.started.length === 1);
    expect(await queue.control.cancel(id, ada)).toBe("aborting");
    void dying.kill();
    const other = harness.open({ leaseMs: 1_000 });
    const worker = workOn(other, () => done);
    await until("the request", async () => (await other.getRequest(id)).phase === "finished");
    expect(await other.getRequest(id)).toMatchObject({ outcome: "cancelled" });
    await expectNothingLeft(harness, other);
    expect(worker.started).toHaveLength(0);
  });
});

describe("dead letters", () => {
  const dies = async () => {
    const queue = harness.open();
    const state = { heals: false };
    const worker = workOn(queue, () =>
      state.heals ? done : { kind: "terminal", error: new Error("cannot") },
    );
    for (const key of [keyOf("web-1"), keyOf("web-2"), keyOf("db"), elsewhere("web-3")]) {
      await queue.request(key, watch);
    }
    await expectNothingLeft(harness, queue);
    state.heals = true;
    return { queue, worker };
  };

  test("are listed with their cause; a dry run counts the matches", async () => {
    const { queue } = await dies();
    const { items } = await queue.control.listKeys({ phase: "deadLettered", namespace: "demo" });
    expect(items.map(({ key }) => key.split("/").at(-1))).toEqual(["db", "web-1", "web-2"]);
    expect(items[0]?.deadLetter).toMatchObject({ error: { code: "terminal", message: "cannot" } });
    const count = async (match: object) =>
      (await queue.control.release({ match }, ada, { dryRun: true })).count;
    expect(
      await Promise.all([count({}), count({ name: "web" }), count({ namespace: "other" })]),
    ).toEqual([4, 3, 1]);
    expect(await queue.control.listOperatorActions()).toEqual([]);
  });

  test("are released by key or by match, as user requests", async () => {
    const { queue, worker } = await dies();
    expect(await queue.control.release({ key: keyOf("db") }, ada)).toEqual({ count: 1 });
    expect(
      await queue.control.release({ match: { name: "web", namespace: "demo" } }, ada, {
        via: "http",
      }),
    ).toEqual({ count: 2 });
    await until("three more", () => worker.started.length === 7);
    await expectNothingLeft(harness, queue);
    expect(worker.started.at(-1)).toMatchObject({ class: "interactive", failures: 0 });
    expect(worker.started.at(-1)?.triggers).toMatchObject([
      { kind: "http", by: "ada", reason: "released: a bad release" },
    ]);
    const { items } = await queue.control.listKeys({ phase: "deadLettered" });
    expect(items.map(({ key }) => key.split("/").at(-1))).toEqual(["web-3"]);
    await expect(queue.control.release({ key: keyOf("db") }, ada)).rejects.toMatchObject({
      code: "not_found",
    });
    expect(await queue.control.listOperatorActions()).toMatchObject([
      {
        kind: "release",
        by: "ada",
        count: 2,
        scope: "all dead-lettered keys with name web, namespace demo",
      },
      { kind: "release", count: 1 },
    ]);
  });
});

describe("search", () => {
  test("finds keys by phase, namespace and substring of the name, in pages", async () => {
    const queue = harness.open();
    const namespaces = ["a", "demo", "z", "z-1", "z0"];
    const keys = namespaces.flatMap((namespace) =>
      Array.from({ length: 400 }, (_, n) => ({ ...keyOf(`web-${n}`), namespace })),
    );
    const results = await queue.requestMany(
      keys.slice(0, 1_000).map((key) => ({ key, trigger: watch })),
    );
    expect(results.every(({ kind }) => kind === "accepted")).toBe(true);
    for (const part of [keys.slice(1_000, 2_000), keys.slice(2_000)]) {
      await queue.requestMany(part.map((key) => ({ key, trigger: watch })));
    }
    await queue.control.pause({ kind: "namespace", namespace: "z" }, ada);

    const all = async (query: object, limit = 1_000) => {
      const found: string[] = [];
      for (let after: string | undefined = ""; after !== undefined;) {
        const page: Awaited<ReturnType<typeof queue.control.listKeys>> =
          await queue.control.listKeys({ ...query, after, limit });
        found.push(...page.items.map(({ key }) => key.split("/").slice(3).join("/")));
        after = page.next;
      }
      return found;
    };
    expect(new Set(await all({}, 7)).size).toBe(2_000);
    // In the order of keys, "z-1" is before "z" and "z0".
    for (const wanted of [
      ["z", "z-1"],
      ["z0", "z"],
      ["z-1", "z0"],
      ["a", "z-1", "z0", "z"],
    ]) {
      for (const limit of [7, 1_000]) {
        expect(new Set(await all({ namespaces: wanted }, limit)).size).toBe(400 * wanted.length);
      }
      const paused = wanted.includes("z") ? 400 : 0;
      expect(await all({ namespaces: wanted, phase: "paused" })).toHaveLength(paused);
      const waiting = 400 * wanted.length - paused;
      expect(await all({ namespaces: wanted, phase: "waiting" })).toHaveLength(waiting);
    }
    expect(await all({ namespace: "demo" })).toHaveLength(400);
    expect(await all({ namespace: "none" })).toEqual([]);
    expect(await all({ namespaces: ["z", "a"] }, 7)).toHaveLength(800);
    expect(await all({ namespaces: ["z", "a"], namespace: "demo" })).toEqual([]);
    expect((await all({ name: "b-39" }, 2)).length).toBe(5 * 11);
    expect(await all({ namespace: "z", name: "eb-7", phase: "paused" }, 3)).toHaveLength(11);
    expect(await all({ phase: "waiting" })).toHaveLength(1_600);
    await expect(queue.control.listKeys({ limit: 0 })).rejects.toMatchObject({
      code: "invalid_request",
    });
  });

  test("a cursor contains no name of another namespace than the wanted ones", async () => {
    const queue = harness.open();
    const keys = ["a", "b", "c", "d"].flatMap((namespace) =>
      Array.from({ length: 300 }, (_, n) => ({ ...keyOf(`of-${namespace}-${n}`), namespace })),
    );
    for (let at = 0; at < keys.length; at += 1_000) {
      const part = keys.slice(at, at + 1_000);
      await queue.requestMany(part.map((key) => ({ key, trigger: watch })));
    }
    for (const query of [{}, { name: "99" }, { phase: "backoff" }] as const) {
      for (let after: string | undefined = ""; after !== undefined;) {
        const page: Awaited<ReturnType<typeof queue.control.listKeys>> =
          await queue.control.listKeys({ ...query, namespaces: ["b", "d"], after, limit: 50 });
        expect(JSON.stringify(page)).not.toMatch(/of-[ac]/);
        after = page.next;
      }
    }
  });

  test("omits keys of deleted objects until the object returns", async () => {
    const queue = harness.open();
    workOn(queue, ({ floor }) => (floor === undefined ? { kind: "gone" } : done));
    const found = async () => (await queue.control.listKeys()).items.length;
    await queue.request(keyOf("a"), watch);
    await expectNothingLeft(harness, queue);
    await until("forgotten", async () => (await found()) === 0);
    await queue.request(keyOf("a"), { ...watch, resourceVersion: "5" });
    await expectNothingLeft(harness, queue);
    expect(await found()).toBe(1);
  });
});

describe("back pressure", () => {
  test("P1: at the limit, rejects only external requests that would add a key", async () => {
    const queue = harness.open({ maxQueueLength: 3 });
    await queue.control.pause({ kind: "key", key: keyOf("parked") }, ada);
    const parking = workOn(queue, () => done);
    await queue.request(keyOf("parked"), watch);
    await expectNothingLeft(harness, queue);
    await parking.stop();
    const coalesced = async (name: string) => (await queue.request(keyOf(name), http)).coalesced;
    expect([await coalesced("a"), await coalesced("b")]).toEqual([false, false]);
    await expect(coalesced("c")).rejects.toMatchObject({ code: "queue_full", retryAfterMs: 5_000 });
    expect([await coalesced("b"), await coalesced("parked")]).toEqual([true, true]);
    expect(await queue.getKey(keyOf("c"))).toBeUndefined();
    for (const requestClass of ["event", "background", "interactive"] as const) {
      await expect(queue.request(keyOf("c"), http, { class: requestClass })).rejects.toMatchObject({
        code: "queue_full",
      });
    }
    await queue.request(keyOf("c"), http, { class: "retry" });
    for (const kind of ["watch", "owner", "resync", "schedule", "signal", "retry"] as const) {
      await queue.request(keyOf(kind), { kind });
    }
    const worker = workOn(queue, () => done);
    await expectNothingLeft(harness, queue);
    expect(worker.started).toHaveLength(9);
    expect(await queue.request(keyOf("d"), http)).toMatchObject({ coalesced: false });
  });

  test("the limit is exact under concurrency", async () => {
    const queues = [
      harness.open({ maxQueueLength: 50 }),
      harness.open({ maxQueueLength: 50 }),
    ] as const;
    const ask = async (n: number) => {
      const queue = queues[n % 2] ?? queues[0];
      // Every eighth request must not be rejected.
      const trigger = n % 8 === 7 ? watch : http;
      const [result] = await queue.requestMany([{ key: keyOf(`${n}`), trigger }]);
      return result?.kind === "accepted" && trigger === http;
    };
    const accepted = await Promise.all(Array.from({ length: 48 }, (_, n) => ask(n)));
    expect(accepted.filter(Boolean)).toHaveLength(42);
    const more = await Promise.all(Array.from({ length: 160 }, (_, n) => ask(48 + n)));
    const { waiting } = await queues[0].counts();
    const unbounded = (48 + 160) / 8;
    expect(42 + more.filter(Boolean).length + unbounded).toBe(waiting);
    // Early requests of the watch count towards the limit, late ones exceed it.
    expect(more.filter(Boolean).length).toBeLessThanOrEqual(2);
    expect(waiting).toBeGreaterThanOrEqual(50);
  });

  test("accepts at most a thousand requests at once", async () => {
    const queue = harness.open();
    const items = Array.from({ length: 1_001 }, () => ({ key: keyOf("a"), trigger: http }));
    await expect(queue.requestMany(items)).rejects.toMatchObject({ code: "invalid_request" });
    const results = await queue.requestMany([
      { key: keyOf("a"), trigger: http },
      { key: { ...keyOf("a"), controller: "other" }, trigger: http },
    ]);
    expect(results.map(({ kind }) => kind)).toEqual(["accepted", "refused"]);
  });

  test("a batch at the limit is accepted as far as possible", async () => {
    const queue = harness.open({ maxQueueLength: 100 });
    const items = Array.from({ length: 250 }, (_, n) => ({ key: keyOf(`${n}`), trigger: http }));
    const results = await queue.requestMany(items);
    const codes = results.map((result) =>
      result.kind === "refused" ? result.error.code : "accepted",
    );
    expect(codes.slice(0, 100).every((code) => code === "accepted")).toBe(true);
    expect(codes.slice(100).every((code) => code === "queue_full")).toBe(true);
  });
});

test("pauses, search, cancellation and release cover all shards", async () => {
  const queue = harness.open({ shards: 4 });
  const state = { heals: false };
  const worker = workOn(queue, () =>
    state.heals ? done : { kind: "terminal", error: new Error("cannot") },
  );
  const names = Array.from({ length: 24 }, (_, n) => `pool-${n}`);
  const scope = { kind: "namespace", namespace: "demo" } as const;
  await queue.control.pause(scope, ada);
  const results = await queue.requestMany(
    names.map((name) => ({ key: keyOf(name), trigger: http })),
  );
  await expectNothingLeft(harness, queue);
  expect(worker.started).toHaveLength(0);
  expect(await queue.control.listPauses()).toMatchObject([{ scope, ...ada }]);
  const [first] = results;
  if (first?.kind !== "accepted") throw new Error("the first request was refused");
  expect(await queue.control.cancel(first.accepted.id, ada)).toBe("cancelled");

  const listed: string[] = [];
  for (let after: string | undefined = ""; after !== undefined;) {
    const page: Awaited<ReturnType<typeof queue.control.listKeys>> = await queue.control.listKeys({
      phase: "paused",
      after,
      limit: 5,
    });
    listed.push(...page.items.map(({ key }) => key));
    after = page.next;
  }
  expect(listed).toHaveLength(24);
  expect(listed).toEqual(listed.toSorted());

  expect(await queue.control.resume(scope, ada)).toEqual({ resumed: 23 });
  await expect(queue.control.resume(scope, ada)).rejects.toMatchObject({ code: "not_found" });
  await until("all died", () => worker.closed.length === 23);
  const match = { name: "pool-1" };
  expect(await queue.control.release({ match }, ada, { dryRun: true })).toEqual({ count: 11 });
  state.heals = true;
  expect(await queue.control.release({ match }, ada)).toEqual({ count: 11 });
  await until("they ran", () => worker.closed.length === 34);
  expect(await queue.control.listOperatorActions()).toMatchObject([
    { kind: "release", count: 11 },
    { kind: "resume" },
    { kind: "cancel" },
    { kind: "pause" },
  ]);
});
