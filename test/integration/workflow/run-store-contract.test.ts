import * as fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { defined, ensureError } from "@konverge/core";
import type { CodeVersion } from "../../../libs/workflow/src/store/code-version.ts";
import { planResume } from "../../../libs/workflow/src/store/plan-resume.ts";
import { createRedisRunStore } from "../../../libs/workflow/src/store/redis-run-store.ts";
import {
  FencedError,
  type AnnouncedCode,
  type Held,
  type Leave,
  type RunOutputText,
  type RunSlot,
} from "../../../libs/workflow/src/store/run-journal-store.ts";
import type { NewRun } from "../../../libs/workflow/src/store/run-actions.ts";
import { runNames } from "../../../libs/workflow/src/store/run-names.ts";
import type { Failure, StepRecord } from "../../../libs/workflow/src/store/run-record.ts";
import { refOfSpread, spreadStepOf } from "../../../libs/workflow/src/store/spread-step.ts";
import { updateSignal, updateSignalId } from "../../../libs/workflow/src/store/run-updates.ts";
import type { RunStore } from "../../../libs/workflow/src/store/run-store.ts";
import { withCodec } from "../../../libs/workflow/src/codec/coded-run-store.ts";
import { createMemoryRunStore } from "../../../libs/workflow/src/testing/memory-run-store.ts";
import { scrambleCodec } from "../../support/scramble-codec.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

const numRuns = isLongRun ? 300 : 30;
const RETENTION_MS = 3_600_000;
const harness = useQueues();

/** A store, and the end of the retention of all that has ended. */
interface Side {
  readonly store: RunStore;
  expire(): Promise<void>;
  /** Returns when the clock has changed. */
  tick(): Promise<void>;
}

function openMemory(): Side {
  let nowMs = 1_000;
  return {
    store: createMemoryRunStore({ now: () => nowMs, retentionMs: RETENTION_MS }),
    async expire() {
      nowMs += RETENTION_MS;
    },
    async tick() {
      nowMs += 1;
    },
  };
}

let serial = 0;
function openRedis(): Side {
  const { redis } = harness;
  const prefix = `${harness.prefix}:${serial++}`;
  const call: Parameters<typeof createRedisRunStore>[0]["call"] = (run) => run(redis);
  return {
    store: createRedisRunStore({ call, prefix, cluster: "c", retentionMs: RETENTION_MS }),
    // In place of waiting, since Redis has no other clock.
    async expire() {
      for await (const names of redis.scanStream({ match: `${prefix}:*`, count: 1_000 })) {
        for (const name of names as string[]) {
          const leftMs = await redis.pttl(name);
          const isOver = (leftMs > 0 && leftMs <= RETENTION_MS) || name.includes("/codes/");
          if (isOver) await redis.unlink(name);
          // The times of ends, by which ended runs are removed from the index.
          if (!/\/ended\/|\/sizes$/.test(name)) continue;
          const ends = await redis.zrange(name, "0", "-1");
          for (const end of ends) await redis.zincrby(name, String(-RETENTION_MS), end);
        }
      }
    },
    async tick() {
      const begin = await timeMs(redis);
      // At most a millisecond.
      while ((await timeMs(redis)) === begin);
    },
  };
}

async function timeMs(redis: typeof harness.redis): Promise<number> {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}

/** As a worker with a codec sees the store. */
function coded(side: Side): Side {
  const store = withCodec(side.store, { codec: scrambleCodec(), executes: true });
  return { store, expire: () => side.expire(), tick: () => side.tick() };
}

const ref = (id: string) => ({ workflow: "w", id });
const newRun = (id: string, more: Partial<NewRun> = {}): NewRun => ({
  ...ref(id),
  version: 1,
  input: { a: 1 },
  ...more,
});
async function claim(store: RunStore, id: string, lease = 1): Promise<Held> {
  const claimed = await store.claim(ref(id), { lease, owner: `o${lease}` });
  if (claimed.kind !== "held") throw new Error(`run ${id} is ${claimed.kind}`);
  return claimed;
}
const stepFailed = { code: "step_failed", message: "no" };
const done: Leave = { kind: "done", result: 7 };
async function complete(store: RunStore, run: NewRun, how: Leave = done) {
  expect(await store.start(run)).toMatchObject({ kind: "created" });
  return await store.leave(await claim(store, run.id), how);
}

describe.each([
  { name: "memory", open: openMemory },
  { name: "memory, with a codec", open: () => coded(openMemory()), isCoded: true },
  { name: "Redis", open: openRedis },
])("the run store in $name", ({ open, isCoded = false }) => {
  let side: Side;
  let store: RunStore;
  beforeEach(() => {
    side = open();
    store = side.store;
  });

  test("the end of a run names the key to request, also if the run has ended before", async () => {
    const run = newRun("a", { notify: "pools/default/x/_/web" });
    expect(await complete(store, run)).toEqual({ notify: run.notify });
    expect(await store.claim(ref("a"), { lease: 2, owner: "o2" })).toEqual({
      kind: "ended",
      notify: run.notify,
    });
  });

  test("a run that starts again after its retention has nothing of the earlier one", async () => {
    const labels = { a: "1" };
    await store.start(newRun("a", { labels }));
    await store.signal(ref("a"), { name: "n", id: "1" });
    const held = await claim(store, "a");
    await store.appendLog(held, [{ atMs: 1, level: "info", message: "m" }], 1);
    const [taken] = await store.readSignals(held, "n");
    await store.commit(held, "s", { kind: "update", value: 1 }, { taken: taken!, update: "u" });
    await store.leave(held, { kind: "continued", input: 2 });
    await store.terminate(ref("a"), { by: "ann", reason: "lost" });
    await side.expire();
    expect(await store.start(newRun("a", { labels }))).toMatchObject({ kind: "created" });
    await store.overdue("w");
    for (const filter of [{}, { labels }, { status: "queued" as const }]) {
      const { runs } = await store.list("w", { limit: 9, filter });
      expect(runs.map(({ id }) => id)).toEqual(["a"]);
    }
    expect(await store.logs(ref("a"))).toEqual([]);
    expect(await store.answerTo(ref("a"), "u")).toBeUndefined();
    expect([...(await store.fences("w")).keys()]).toEqual([]);
    await store.leave(await claim(store, "a"), done);
  });

  describe("a run that continues with another input", () => {
    const next = (input: unknown): Leave => ({ kind: "continued", input });

    test("keeps its id, key, labels, author, values and signals, and loses its records", async () => {
      const kept = { key: "k", labels: { a: "1" }, by: "ann", scheduledAtMs: 7_000 };
      await store.start(newRun("a", kept));
      await store.signal(ref("a"), { name: "n", id: "1" });
      const held = await claim(store, "a");
      await store.keepInput(held, { a: 2 });
      await store.watch(held, ["x/v1/x/default/o"]);
      await store.commit(
        held,
        "s",
        { kind: "step" },
        { warnings: [{ code: "many_steps", message: "m" }] },
      );
      await store.note(held, "t", { attempts: 1, delayMs: 5 });
      await store.appendLog(held, [{ atMs: 1, level: "info", message: "m" }], 1);
      expect(await store.leave(held, next({ a: 3 }), { published: '{"p":1}' })).toEqual({});
      expect(await store.get(ref("a"))).toMatchObject({
        ...kept,
        status: "queued",
        round: 2,
        input: { a: 3 },
        firstInput: { a: 1 },
        published: { p: 1 },
      });
      expect(await store.peek(ref("a"))).toMatchObject({ status: "queued", round: 2, steps: 0 });
      expect(await store.start(newRun("b", { key: "k" }))).toMatchObject({ kind: "attached" });
      expect((await store.logs(ref("a"))).map(({ message }) => message)).toEqual(["m"]);
      const again = await claim(store, "a", 2);
      expect(again.run.warnings).toBeUndefined();
      expect(again).toMatchObject({ signalCount: 1, logged: 0, died: false, bytes: 0 });
      expect([...again.steps.keys(), ...again.progress.keys(), ...again.watched]).toEqual([]);
      expect(again.parsedInput).toBeUndefined();
      const record = await store.commit(again, "s", { kind: "step", value: 2 });
      expect(record).toMatchObject({ seq: 1, value: 2 });
      await store.leave(again, next({ a: 4 }));
      expect(await store.get(ref("a"))).toMatchObject({ round: 3, firstInput: { a: 1 } });
    });

    test("rejects the execution of the earlier round, whose repeated call has no effect", async () => {
      await store.start(newRun("a"));
      const held = await claim(store, "a");
      await store.leave(held, next(2));
      await store.leave(held, next(2));
      expect(await store.get(ref("a"))).toMatchObject({ round: 2, input: 2 });
      await claim(store, "a", 2);
      await store.leave(held, next(2));
      expect(await store.get(ref("a"))).toMatchObject({ round: 2, status: "running" });
      const record: StepRecord = { kind: "step" };
      await expect(store.commit(held, "s", record)).rejects.toThrow(FencedError);
      await expect(store.note(held, "s", { attempts: 1, delayMs: 1 })).rejects.toThrow(FencedError);
      await expect(store.leave(held, done)).rejects.toThrow(FencedError);
      expect(await store.holds(held)).toBe(false);
    });

    test("takes the newest version that a live worker has", async () => {
      await store.start(newRun("a"));
      const held = await claim(store, "a");
      await store.announce("w", "old", { version: 2, accepts: [] });
      await store.announce("w", "new", { version: 10, accepts: [] });
      await store.leave(held, next(2));
      expect(await store.get(ref("a"))).toMatchObject({ version: 10 });
      const claimed = await store.claim(ref("a"), {
        lease: 2,
        owner: "o2",
        code: { version: 2, accepts: [1] },
      });
      expect(claimed).toMatchObject({ kind: "unfit" });
    });

    test("keeps the answers to its updates", async () => {
      await store.start(newRun("a"));
      for (const id of ["1", "2"]) await store.signal(ref("a"), { name: "n", id });
      const held = await claim(store, "a");
      const value = "x".repeat(20_000);
      const [taken] = await store.readSignals(held, "n");
      await store.commit(held, "s", { kind: "update", value }, { taken: taken!, update: "u" });
      const answer = { kind: "accepted", step: "s", value };
      expect(await store.answerTo(ref("a"), "u")).toEqual(answer);
      await store.leave(held, next(2));
      expect(await store.answerTo(ref("a"), "u")).toEqual(answer);
      const again = await claim(store, "a", 2);
      await store.commit(again, "s", { kind: "step" });
      expect(await store.answerTo(ref("a"), "u")).toEqual(answer);
      expect(await store.readSignals(again, "n")).toMatchObject([{ id: "2" }]);
    });

    test("throws a pending cancellation in the next round, and forgets one that was thrown", async () => {
      await store.start(newRun("a"));
      const first = await claim(store, "a");
      await store.cancel(ref("a"), { reason: "r" });
      await store.leave(first, next(2));
      const second = await claim(store, "a", 2);
      expect(second).toMatchObject({ cancels: 1, run: { cancel: { reason: "r" } } });
      expect(second.cancelledAt).toBeUndefined();
      await store.commit(second, "s", { kind: "step", error: stepFailed }, { cancels: 1 });
      await store.leave(second, next(3));
      const third = await claim(store, "a", 3);
      expect(third.cancels).toBe(0);
      expect(third.run.cancel).toBeUndefined();
      expect(third.cancelledAt).toBeUndefined();
      expect(await store.cancel(ref("a"), {})).toBe("requested");
    });

    test("is paused between two rounds if a pause was requested", async () => {
      await store.start(newRun("a"));
      const held = await claim(store, "a");
      await store.pause("w", ["a"], { request: { by: "ann" } });
      await store.leave(held, next(2));
      expect(await store.get(ref("a"))).toMatchObject({ status: "paused", round: 2, input: 2 });
      expect(await store.claim(ref("a"), { lease: 2, owner: "o2" })).toEqual({ kind: "paused" });
      await store.resume("w", ["a"]);
      expect((await claim(store, "a", 3)).run).toMatchObject({ status: "running", round: 2 });
    });

    test("needs no mark of an earlier round any more", async () => {
      await store.start(newRun("a"));
      const held = await claim(store, "a");
      const { createdAtMs } = held.run;
      const mark = { ...ref("a"), installation: "i", createdAtMs, step: "s", created: true };
      expect(await store.statesOf([mark])).toEqual(["live"]);
      await store.leave(held, next(2));
      const again = await claim(store, "a", 2);
      expect(await store.statesOf([mark, { ...mark, round: 2 }])).toEqual(["settled", "live"]);
      await store.leave(again, { kind: "failed", error: stepFailed });
      expect(await store.statesOf([mark, { ...mark, round: 2, created: false }])).toEqual([
        "settled",
        "ended",
      ]);
    });

    test("receives the end of a child only in the round that started it", async () => {
      const parent = { ...ref("p"), step: "kid" };
      await store.start(newRun("p"));
      await store.start(newRun("a", { parent }));
      await store.leave(await claim(store, "p"), next(2));
      // By a worker that has lost the run.
      await store.start(newRun("b", { parent }));
      const second = await claim(store, "p", 2);
      expect([...second.progress]).toEqual([]);
      await store.start(newRun("c", { parent: { ...parent, round: 2 } }));
      await store.leave(await claim(store, "a"), done);
      expect([...(await claim(store, "p", 3)).progress]).toMatchObject([["kid", { attempts: 0 }]]);
      expect((await claim(store, "p", 4)).progress.get("kid")?.childEnded).toBeUndefined();
      const followers = await store.leave(await claim(store, "c"), done);
      expect(followers).toMatchObject({ parent: ref("p") });
      expect((await claim(store, "p", 5)).progress.get("kid")?.childEnded).toBe(true);
    });
  });

  test("a start for an older generation returns the newer run, active or ended", async () => {
    const at = (generation: number) => ({ key: "k", origin: { uid: "u", generation } });
    await store.start(newRun("b", at(2)));
    const older = newRun("a", { ...at(1), onExisting: "supersede" });
    expect(await store.start(older)).toEqual({ kind: "attached", id: "b" });
    await store.leave(await claim(store, "b"), done);
    expect(await store.start(older)).toEqual({ kind: "attached", id: "b" });
  });

  test("runs with a key start in the order of their starts, up to a limit", async () => {
    const queued = (id: string) =>
      store.start(newRun(id, { key: "k", onExisting: "queue", maxQueued: 2 }));
    expect([await queued("a"), await queued("b"), await queued("c")]).toEqual([
      { kind: "created" },
      { kind: "created" },
      { kind: "created" },
    ]);
    expect(await queued("d")).toEqual({ kind: "full", id: "c" });
    expect(await store.start(newRun("d", { key: "k" }))).toEqual({ kind: "attached", id: "c" });
    const claimOf = (id: string) => store.claim(ref(id), { lease: 9, owner: id });
    for (const [id, next, later] of [
      ["a", "b", ["b", "c"]],
      ["b", "c", ["c"]],
    ] as const) {
      const held = await claim(store, id);
      for (const other of later) expect(await claimOf(other)).toEqual({ kind: "waiting" });
      expect(await store.leave(held, done)).toMatchObject({ next: ref(next) });
    }
    await claim(store, "c");
    expect(await queued("d")).toEqual({ kind: "created" });
  });

  test("a cancelled queued run ends, and the runs around it stay queued", async () => {
    for (const id of ["a", "b", "c"]) {
      await store.start(newRun(id, { key: "k", onExisting: "queue" }));
    }
    const [a, b, c] = [ref("a"), ref("b"), ref("c")];
    expect(await store.endQueued(a, {})).toEqual({ kind: "active" });
    await store.cancel(b, { by: "ann" });
    const ended = { kind: "terminated", next: c };
    expect(await store.endQueued(b, { by: "ann" })).toMatchObject(ended);
    const run = await store.get(b);
    expect(run).toMatchObject({ status: "cancelled", error: { code: "cancelled" } });
    expect(run).not.toHaveProperty("terminated");
    expect(await store.endQueued(b, {})).toMatchObject({ kind: "ended" });
    expect(await store.endQueued(ref("none"), {})).toEqual({ kind: "missing" });
    expect(await store.claim(c, { lease: 1, owner: "c" })).toMatchObject({ kind: "waiting" });
    await store.leave(await claim(store, "a"), done);
    expect(await store.endQueued(c, {})).toEqual({ kind: "active" });
    expect(await store.claim(c, { lease: 2, owner: "c" })).toMatchObject({ kind: "held" });
  });

  test("a run that supersedes cancels the active run and those that wait for it", async () => {
    const start = (id: string, onExisting: "queue" | "supersede") =>
      store.start(newRun(id, { key: "k", onExisting }));
    await start("a", "queue");
    await start("b", "queue");
    expect(await start("c", "supersede")).toEqual({ kind: "created", replaces: "a" });
    const cancel = { reason: "superseded by c" };
    expect([await store.get(ref("a")), await store.get(ref("b"))]).toMatchObject([
      { cancel },
      { cancel },
    ]);
    const claimOf = async (id: string) =>
      (await store.claim(ref(id), { lease: 9, owner: id })).kind;
    await store.leave(await claim(store, "a"), {
      kind: "cancelled",
      error: { code: "x", message: "" },
    });
    expect(await claimOf("c")).toBe("waiting");
    await store.leave(await claim(store, "b"), {
      kind: "cancelled",
      error: { code: "x", message: "" },
    });
    await claim(store, "c");
  });

  test("a claim returns the first signal of each awaited name, and refuse drops and counts signals", async () => {
    await store.start(newRun("a"));
    const wait: Leave = {
      kind: "waiting",
      waits: ["go", "go#2", "none"].map((name) => ({ step: name, kind: "signal" })),
    };
    await store.leave(await claim(store, "a"), wait);
    for (const name of ["other", "go", "go", "go"]) {
      const signalId = crypto.randomUUID();
      await store.signal(ref("a"), { name, id: signalId, payload: { to: name } });
    }
    const held = await claim(store, "a", 2);
    expect(held).toMatchObject({
      signalCount: 4,
      awaited: ["go", "none"],
      signals: [{ name: "go", seq: 2, payload: { to: "go" } }],
    });
    const read = await store.readSignals(ref("a"), "go");
    expect(read.map(({ seq }) => seq)).toEqual([2, 3, 4]);
    const refused = read.slice(0, 2).map((signal) => ({ signal, message: `no ${signal.seq}` }));
    await store.refuse(held, "go", refused);
    await store.refuse(held, "go", refused);
    expect(await store.refusedSignals(ref("a"))).toMatchObject({
      count: 2,
      last: [
        { name: "go", message: "no 3" },
        { name: "go", message: "no 2" },
      ],
    });
    const [taken] = await store.readSignals(ref("a"), "go");
    await store.commit(held, "go", { kind: "signal" }, { taken: taken! });
    expect(await store.readSignals(ref("a"), "go")).toEqual([]);
    expect((await store.unconsumedSignals(ref("a"))).map(({ name }) => name)).toEqual(["other"]);
    await store.leave(held, done);
    expect((await store.refusedSignals(ref("a"))).count).toBe(2);
    await expect(store.refuse(held, "go", refused)).rejects.toMatchObject({ name: "FencedError" });
  });

  test("a waiting run is continued only by signals that it may wait for", async () => {
    const send = async (...names: string[]) =>
      await Promise.all(
        names.map((name) => store.signal(ref("a"), { name, id: crypto.randomUUID() })),
      );
    const waitFor = (...names: string[]) =>
      names.map((step) => ({ step, kind: "signal" }) as const);
    let lease = 1;
    const next = async (how: Leave) => {
      await store.leave(await claim(store, "a", lease++), how);
    };
    await store.start(newRun("a"));
    expect(await send("go")).toEqual(["stored"]);
    await next({ kind: "waiting", waits: waitFor("go", "stop#2") });
    expect(await send("go", "stop", "g", "go#2", "other")).toEqual([
      "stored",
      "stored",
      "buffered",
      "buffered",
      "buffered",
    ]);
    await next({ kind: "waiting", waits: [{ step: "approve", kind: "update" }] });
    expect(await send(updateSignal("approve"), "approve")).toEqual(["stored", "buffered"]);
    await next({ kind: "waiting", waits: [] });
    expect(await send("go")).toEqual(["buffered"]);
    // Only the first waits are stored.
    const names = Array.from({ length: 20 }, (_, n) => `s${n}`);
    await next({ kind: "waiting", waits: waitFor(...names) });
    expect(await send("s1", "other")).toEqual(["stored", "stored"]);
    await next({ kind: "waiting" });
    expect(await send("other")).toEqual(["stored"]);
    await next({ kind: "blocked", reason: "broken", untilMs: Date.now() });
    expect(await send("other")).toEqual(["stored"]);
    const held = await claim(store, "a", lease);
    expect([held.signalCount, await send("other")]).toEqual([13, ["stored"]]);
  });

  test("an execution reads what has arrived since its claim", async () => {
    for (const run of ["a", "c", "d"]) await store.start(newRun(run));
    const held = await claim(store, "a");
    const awaited = { signals: ["go", "stop"], children: [ref("c"), ref("d"), ref("missing")] };
    const none = {
      wakeSeq: held.wakeSeq,
      cancels: 0,
      signalCount: 0,
      signals: [],
      ended: [ref("missing")],
      isPausing: false,
      resumes: 0,
      cancelCalls: 0,
    };
    expect(await store.news(held, awaited)).toEqual(none);
    await store.signal(ref("a"), { name: "stop", id: "1", payload: 7 });
    await store.signal(ref("a"), { name: "stop", id: "2" });
    await store.signal(ref("a"), { name: "other", id: "3" });
    await store.cancel(ref("a"), { by: "ann", reason: "why" });
    await store.leave(await claim(store, "d"), done);
    await store.pause("w", ["a"], { request: {} });
    await store.resume("w", ["a"]);
    await store.pause("w", ["a"], { request: {} });
    expect(await store.cancel(ref("a"), {})).toBe("pending");
    expect(await store.news(held, awaited)).toEqual({
      wakeSeq: held.wakeSeq + 6,
      cancel: { by: "ann", reason: "why" },
      cancels: 1,
      signalCount: 3,
      signals: [expect.objectContaining({ name: "stop", id: "1", payload: 7 })],
      ended: [ref("d"), ref("missing")],
      isPausing: true,
      resumes: 1,
      cancelCalls: 2,
    });
    await store.resume("w", ["a"]);
    expect(await claim(store, "a", 2)).toMatchObject({ resumes: 2, cancelCalls: 2 });
    await expect(store.news(held, awaited)).rejects.toMatchObject({ name: "FencedError" });
  });

  test("a parent's progress has its children, active and ended", async () => {
    const parent = { ...ref("p"), step: "kid" };
    const noted = async (lease: number) =>
      (await claim(store, "p", lease)).progress.get("kid")?.childEnded;
    await store.start(newRun("p"));
    await store.start(newRun("c", { parent }));
    expect(await noted(1)).toBe(undefined);
    expect((await claim(store, "p", 2)).progress.has("kid")).toBe(true);
    await store.leave(await claim(store, "c"), done);
    expect(await noted(3)).toBe(true);
    // A repeated start of an ended child leaves the note.
    await store.start(newRun("c", { parent }));
    const held = await claim(store, "p", 4);
    expect(held.progress.get("kid")?.childEnded).toBe(true);
    await store.commit(held, "kid", { kind: "child" });
    expect((await claim(store, "p", 5)).progress.has("kid")).toBe(false);
    await store.start(newRun("late", { parent: { ...ref("p"), step: "other" } }));
    await store.terminate(ref("late"), { by: "ann" });
    expect((await claim(store, "p", 6)).progress.get("other")?.childEnded).toBe(true);
  });

  test("an active run without a parent becomes the child of the run that starts it again", async () => {
    const parent = { ...ref("p"), step: "kid" };
    const parentOf = async (id: string) => (await store.get(ref(id)))?.parent;
    await store.start(newRun("p"));
    await store.start(newRun("c"));
    expect(await store.start(newRun("c", { parent }))).toMatchObject({ kind: "exists" });
    expect(await parentOf("c")).toEqual(ref("p"));
    const other = { ...ref("q"), step: "kid" };
    await store.start(newRun("q"));
    await store.start(newRun("c", { parent: other }));
    expect(await parentOf("c")).toEqual(ref("p"));
    expect(await store.leave(await claim(store, "c"), done)).toMatchObject({ parent: ref("p") });
    const { progress } = await claim(store, "p");
    expect(progress.get("kid")?.childEnded).toBe(true);
    await store.start(newRun("late"));
    await store.leave(await claim(store, "late"), done);
    await store.start(newRun("late", { parent: { ...ref("p"), step: "late" } }));
    expect(await parentOf("late")).toBeUndefined();
  });

  test("a start of a run that waits for a slot returns its place in the line", async () => {
    const slot = { slots: 1, group: "" };
    for (const id of ["a", "b", "c"]) {
      await store.start(newRun(id));
      await store.enter(await claim(store, id), slot);
    }
    const again = await store.start(newRun("c"));
    expect(again).toMatchObject({ kind: "exists", run: { slotWait: { ahead: 1 } } });
    expect(again).toEqual({ kind: "exists", run: await store.get(ref("c")) });
  });

  test("the end of a child is a wake-up of its parent", async () => {
    await store.start(newRun("p"));
    await store.start(newRun("c", { parent: { ...ref("p"), step: "kid" } }));
    const held = await claim(store, "p");
    await store.leave(await claim(store, "c"), done);
    const news = await store.news(held, { signals: [], children: [] });
    expect(news.wakeSeq).toBe(held.wakeSeq + 1);
  });

  test("keeps the last 10 refusals", async () => {
    await store.start(newRun("a"));
    const held = await claim(store, "a");
    for (let n = 1; n <= 12; n += 1) await store.signal(ref("a"), { name: "go", id: `i${n}` });
    const read = await store.readSignals(ref("a"), "go");
    await store.refuse(
      held,
      "go",
      read.map((signal) => ({ signal, message: signal.id })),
    );
    const { count, last } = await store.refusedSignals(ref("a"));
    expect([count, last.map(({ message }) => message)]).toEqual([
      12,
      Array.from({ length: 10 }, (_, n) => `i${12 - n}`),
    ]);
  });

  test("buffers 1 MiB of signals, and accepts more once some were consumed", async (ctx) => {
    if (isCoded) ctx.skip("the limit counts encoded bytes");
    await store.start(newRun("a"));
    const payload = "x".repeat(100_000);
    const send = (id: number) => store.signal(ref("a"), { name: "n", id: String(id), payload });
    const answers: string[] = [];
    for (let id = 0; id < 12; id += 1) answers.push(await send(id));
    expect(answers).toEqual([...Array.from({ length: 10 }, () => "stored"), "full", "full"]);
    const held = await claim(store, "a");
    const [taken] = await store.readSignals(ref("a"), "n");
    await store.commit(held, "n", { kind: "signal" }, { taken: taken! });
    expect([await send(10), await send(11)]).toEqual(["stored", "full"]);
  });

  test("a cancellation that was thrown may be repeated, one that was not stays", async () => {
    const cancel = (by: string) => store.cancel(ref("a"), { by });
    const pending = async () => (await store.cancelling("w")).get("a");
    expect(await cancel("ann")).toBe("missing");
    await store.start(newRun("a"));
    expect([await cancel("ann"), await cancel("bob")]).toEqual(["requested", "pending"]);
    expect(await pending()).toEqual({ number: 1, request: { by: "ann" } });
    const held = await claim(store, "a");
    expect(held).toMatchObject({ cancels: 1, run: { cancel: { by: "ann" } } });
    await store.commit(held, "s", { kind: "step" }, { cancels: 1 });
    expect(await pending()).toBeUndefined();
    expect([await cancel("bob"), await cancel("eve")]).toEqual(["requested", "pending"]);
    expect(await pending()).toEqual({ number: 2, request: { by: "bob" } });
    const again = await claim(store, "a", 2);
    expect(again).toMatchObject({ cancels: 2, run: { cancel: { by: "bob" } } });
    expect(again).not.toHaveProperty("cancelledAt");
    await store.leave(again, {
      kind: "compensating",
      failing: { status: "failed", error: stepFailed },
    });
    expect(await cancel("eve")).toBe("compensating");
    await store.leave(again, { kind: "failed", error: stepFailed });
    expect(await cancel("eve")).toBe("ended");
    expect(await pending()).toBeUndefined();
  });

  test("supersede does not repeat a cancellation that was thrown", async () => {
    const behind = (id: string) => newRun(id, { key: "k", onExisting: "supersede" });
    await store.start(newRun("a", { key: "k" }));
    await store.start(behind("b"));
    const held = await claim(store, "a");
    await store.commit(held, "s", { kind: "step" }, { cancels: 1 });
    await store.start(behind("c"));
    expect((await store.cancelling("w")).has("a")).toBe(false);
  });

  test("a failed run continues after the records that are kept", async () => {
    const origin = { uid: "u", generation: 2, object: "pools/default/x/_/web" };
    await store.start(newRun("a", { key: "k", origin, notify: "pools/default/x/_/web" }));
    const held = await claim(store, "a");
    await store.commit(held, "s", { kind: "step", value: 1 });
    await store.commit(held, "t", { kind: "step", error: stepFailed });
    await store.note(held, "v", { attempts: 1, delayMs: 5 });
    await store.note(held, "undo:w", { attempts: 1, delayMs: 5 });
    await store.retryUndos(ref("a"));
    const { epoch } = (await store.retryFacts(ref("a"))) ?? {};
    expect(epoch).toBe(held.epoch);
    const how = { epoch: held.epoch, drop: ["t"], kept: 1, author: { by: "ann" }, key: "k" };
    expect(await store.reopen(ref("a"), how)).toEqual({ kind: "changed" });
    await store.leave(held, { kind: "failed", error: stepFailed });
    expect(await store.reopen(ref("a"), { ...how, epoch: epoch === 0 ? 1 : 0 })).toEqual({
      kind: "changed",
    });
    await store.start(newRun("b", { key: "k" }));
    expect(await store.reopen(ref("a"), how)).toEqual({ kind: "rejected", holder: "b" });
    await complete(store, newRun("c"));
    await store.leave(await claim(store, "b"), done);
    expect(await store.reopen(ref("a"), how)).toEqual({ kind: "resumed" });
    expect(await store.reopen(ref("a"), how)).toEqual({ kind: "changed" });
    expect(await store.start(newRun("d", { key: "k" }))).toEqual({ kind: "attached", id: "a" });
    expect(await store.get(ref("a"))).toMatchObject({ status: "queued", retry: { by: "ann" } });
    const again = await claim(store, "a", 2);
    expect([...again.steps.keys(), ...again.progress.keys()]).toEqual(["s"]);
    expect(again).toMatchObject({ cancels: 0, logged: 0, died: false });
    expect(again.run.error ?? again.run.endedAtMs ?? again.failing).toBeUndefined();
    expect(await store.commit(again, "x", { kind: "step" })).toMatchObject({ seq: 2 });
    await expect(store.commit(held, "y", { kind: "step" })).rejects.toThrow(FencedError);
    expect(await store.retryFacts(ref("a"))).toMatchObject({
      origin,
      notify: "pools/default/x/_/web",
    });
    expect(await store.retryFacts(ref("none"))).toBeUndefined();
  });

  test("limits of a run are raised and never lowered, and stay in its next round", async () => {
    expect(await store.raise(ref("a"), { steps: 1 })).toBe("missing");
    await store.start(newRun("a"));
    expect((await store.get(ref("a")))?.limits).toBeUndefined();
    expect(await store.raise(ref("a"), { steps: 2_000 })).toBe("raised");
    expect(await store.raise(ref("a"), { steps: 1_500, bytes: 7 })).toBe("low");
    expect(await store.raise(ref("a"), { steps: 2_000, bytes: 7 })).toBe("raised");
    const held = await claim(store, "a");
    expect(held.run.limits).toEqual({ steps: 2_000, bytes: 7 });
    await store.leave(held, { kind: "continued", input: 2 });
    expect((await store.get(ref("a")))?.limits).toEqual({ steps: 2_000, bytes: 7 });
    await store.leave(await claim(store, "a", 2), done);
    expect(await store.raise(ref("a"), { steps: 9_999 })).toBe("ended");
  });

  test("a run that a recheck finds blocked again keeps the time, until it waits", async () => {
    const blocked = { kind: "blocked", reason: "why", untilMs: 5_000 } as const;
    await store.start(newRun("a"));
    await store.leave(await claim(store, "a"), blocked);
    const since = (await store.get(ref("a")))?.blockedAtMs;
    expect(since).toBeTypeOf("number");
    const again = await claim(store, "a", 2);
    expect((await store.get(ref("a")))?.blockedAtMs).toBeUndefined();
    await store.leave(again, { ...blocked, reason: "other" });
    expect(await store.get(ref("a"))).toMatchObject({ blockedReason: "other", blockedAtMs: since });
    await store.leave(await claim(store, "a", 3), { kind: "waiting" });
    expect((await store.get(ref("a")))?.blockedAtMs).toBeUndefined();
  });

  test("a run whose undo is tried again keeps the reason and the time until it ends", async () => {
    const blocked = { kind: "blocked", reason: "why", untilMs: 5_000 } as const;
    const failing = { status: "failed", error: stepFailed } as const;
    await store.start(newRun("a"));
    await store.leave(await claim(store, "a"), { ...blocked, reason: "before" });
    const held = await claim(store, "a", 2);
    await store.leave(held, { kind: "compensating", failing });
    expect(await store.get(ref("a"))).not.toHaveProperty("blockedReason");
    await store.leave(held, blocked);
    const blockedAtMs = (await store.get(ref("a")))?.blockedAtMs;
    expect(blockedAtMs).toBeTypeOf("number");
    const kept = { status: "compensating", blockedReason: "why", blockedAtMs };

    const again = await claim(store, "a", 3);
    expect(await store.get(ref("a"))).toMatchObject(kept);
    await store.leave(again, { kind: "waiting" });
    expect(await store.get(ref("a"))).toMatchObject(kept);
    await store.leave(await claim(store, "a", 4), blocked);
    expect(await store.get(ref("a"))).toMatchObject({ ...kept, status: "blocked" });
    await store.leave(await claim(store, "a", 5), { kind: "failed", error: stepFailed });
    expect(await store.get(ref("a"))).not.toHaveProperty("blockedReason");
  });

  describe("pauses", () => {
    const request = { by: "ann", reason: "freeze" };
    const pause = async (id = "a") => (await store.pause("w", [id], { request }))[0];
    const resume = async (id = "a") => (await store.resume("w", [id]))[0];
    const failing = { status: "failed", error: stepFailed } as const;
    const take = (lease: number) => store.claim(ref("a"), { lease, owner: `o${lease}` });
    const blocked = { kind: "blocked", reason: "why", error: stepFailed, untilMs: 5_000 } as const;
    const waits = [{ step: "go", kind: "signal" }] as const;

    test.each([
      { status: "queued", leaves: [], shown: {} },
      { status: "waiting", leaves: [{ kind: "waiting", waits }], shown: { waits } },
      {
        status: "blocked",
        leaves: [blocked],
        shown: { blockedReason: "why", blockedError: stepFailed },
      },
      {
        status: "compensating",
        leaves: [{ kind: "compensating", failing }, { kind: "waiting" }],
        shown: {},
      },
    ] satisfies readonly { status: string; leaves: Leave[]; shown: object }[])(
      "a $status run is paused at once, is not claimed, and gets its status back",
      async ({ status, leaves, shown }) => {
        await store.start(newRun("a"));
        if (leaves.length > 0) {
          const held = await claim(store, "a");
          for (const how of leaves) await store.leave(held, how);
        }
        const before = await store.get(ref("a"));
        expect([await pause(), await store.pausing("w")]).toEqual(["paused", new Set()]);
        const paused = await store.get(ref("a"));
        expect(paused).toMatchObject({ status: "paused", pause: request, ...shown });
        expect(await take(7)).toEqual({ kind: "paused" });
        expect(await store.list("w", { limit: 9, filter: { status: "paused" } })).toMatchObject({
          runs: [{ id: "a", pause: request }],
        });
        expect([await resume(), await resume()]).toEqual(["resumed", "unchanged"]);
        expect(await store.get(ref("a"))).toEqual(before);
        expect(before?.status).toBe(status);
        expect(await take(7)).toMatchObject({ kind: "held", died: false });
      },
    );

    test("a run with an execution is pausing until that has left it", async () => {
      await store.start(newRun("a"));
      const held = await claim(store, "a");
      expect([await pause(), await store.pausing("w")]).toEqual(["pausing", new Set(["a"])]);
      await store.commit(held, "s", { kind: "step", value: 1 });
      expect(await store.leave(held, { kind: "compensating", failing })).toEqual({});
      expect((await store.get(ref("a")))?.status).toBe("pausing");
      await store.leave(held, { kind: "waiting" });
      expect(await store.get(ref("a"))).toMatchObject({ status: "paused", pause: request });
      expect([await resume(), (await store.get(ref("a")))?.status]).toEqual([
        "resumed",
        "compensating",
      ]);
      expect(await take(2)).toMatchObject({ kind: "held", failing });
    });

    test("a pausing run that is resumed continues in its execution", async () => {
      await store.start(newRun("a"));
      const held = await claim(store, "a");
      await pause();
      expect([await resume(), (await store.get(ref("a")))?.status]).toEqual(["resumed", "running"]);
      await store.leave(held, { kind: "waiting" });
      const run = await store.get(ref("a"));
      expect(run).toMatchObject({ status: "waiting" });
      expect(run).not.toHaveProperty("pause");
    });

    test("the next claim ends the pausing of a lost execution, and fences it", async () => {
      await store.start(newRun("a"));
      const held = await claim(store, "a");
      await pause();
      expect(await take(1)).toEqual({ kind: "paused" });
      await resume();
      const lost = await claim(store, "a", 2);
      expect(lost.died).toBe(true);
      await pause();
      expect(await take(1)).toEqual({ kind: "fenced" });
      expect(await take(3)).toEqual({ kind: "paused" });
      for (const old of [held, lost]) {
        await expect(store.commit(old, "s", { kind: "step" })).rejects.toThrow(FencedError);
      }
      expect((await store.get(ref("a")))?.status).toBe("paused");
      await resume();
      // What the lost execution has begun is unknown.
      expect(await take(4)).toMatchObject({ kind: "held", died: true });
    });

    test("signals are kept, and only an operator's cancellation ends the pause", async () => {
      await store.start(newRun("a"));
      await store.leave(await claim(store, "a"), { kind: "waiting", waits });
      await pause();
      expect(await store.signal(ref("a"), { name: "go", id: "1" })).toBe("stored");
      expect(await store.cancel(ref("a"), { reason: "superseded" })).toBe("requested");
      expect(await take(2)).toEqual({ kind: "paused" });
      expect(await store.cancel(ref("a"), { by: "bob" }, { resumes: true })).toBe("requested");
      expect(await take(3)).toMatchObject({ kind: "held", cancels: 1, signals: [{ id: "1" }] });
    });

    test("an end in the last body, and a termination, forget the pause", async () => {
      await store.start(newRun("a"));
      const held = await claim(store, "a");
      await pause();
      await store.leave(held, done);
      await store.start(newRun("b"));
      await pause("b");
      expect(await store.terminate(ref("b"), request)).toMatchObject({ kind: "terminated" });
      for (const [id, status] of Object.entries({ a: "done", b: "cancelled" })) {
        const run = await store.get(ref(id));
        expect(run).toMatchObject({ status });
        expect(run).not.toHaveProperty("pause");
        expect([await pause(id), await resume(id)]).toEqual(["ended", "ended"]);
      }
      expect([await pause("c"), await resume("c")]).toEqual(["missing", "missing"]);
    });

    test("many runs are paused and resumed at once, except those in another status", async () => {
      for (const id of ["a", "b", "c"]) await store.start(newRun(id));
      await claim(store, "b");
      const ids = ["a", "b", "c", "d"];
      const all = (by: string, wanted: "queued" | "running") =>
        store.pause("w", ids, { request: { by }, wanted });
      expect(await all("ann", "queued")).toEqual(["paused", "changed", "paused", "missing"]);
      // A repeated call gives the same answers, another caller finds them paused.
      expect(await all("ann", "queued")).toEqual(["paused", "changed", "paused", "missing"]);
      expect(await all("bob", "running")).toEqual(["unchanged", "pausing", "unchanged", "missing"]);
      expect((await store.counts("w")).paused).toBe(2);
      expect(await store.resume("w", ids, { wanted: "paused" })).toEqual([
        "resumed",
        "changed",
        "resumed",
        "missing",
      ]);
    });
  });

  test("an undo is skipped only in a run that is being undone, and its own record stays", async () => {
    const skip = (step: string) => store.skipUndo(ref("a"), step, { by: "ann", reason: "gone" });
    expect(await skip("s")).toBe("missing");
    await store.start(newRun("a"));
    const held = await claim(store, "a");
    await store.commit(held, "s", { kind: "step", hasUndo: true });
    expect(await skip("s")).toBe("active");
    const failing = { status: "failed", error: stepFailed } as const;
    await store.leave(held, { kind: "compensating", failing });
    await store.commit(held, "undo:t", { kind: "undo" });
    expect([await skip("s"), await skip("s"), await skip("t")]).toEqual([
      "skipped",
      "skipped",
      "skipped",
    ]);
    // An execution at work on that undo gets the record that came first.
    expect(await store.commit(held, "undo:s", { kind: "undo", attempts: 1 })).toMatchObject({
      kind: "undo",
      seq: 3,
      skipped: { by: "ann", reason: "gone" },
    });
    expect((await store.steps(ref("a"))).get("undo:t")).not.toHaveProperty("skipped");
    await store.leave(held, { kind: "failed", error: stepFailed });
    expect(await skip("s")).toBe("ended");
  });

  describe("heartbeats", () => {
    const heartbeat = { progress: { rows: [], at: 2 }, attempt: 1, atMs: 9_000 };
    const beat = (held: Held, step = "s", silentMs = 0) =>
      store.note(held, step, { attempts: 0, delayMs: 0, running: 1, heartbeat, silentMs });
    const start = async (id = "a") => {
      await store.start(newRun(id));
      return await claim(store, id);
    };

    test("are part of the progress of a step until it is recorded", async () => {
      const held = await start();
      expect(await store.peek(ref("a"))).not.toHaveProperty("beatAtMs");
      await beat(held);
      const noted = { attempts: 0, running: 1, heartbeat };
      expect((await store.journal(ref("a"))).progress.get("s")).toMatchObject(noted);
      expect(await store.peek(ref("a"))).toMatchObject({ beatAtMs: 9_000 });
      const next = await claim(store, "a", 2);
      expect(next.progress.get("s")).toMatchObject(noted);
      await expect(beat(held)).rejects.toThrow(FencedError);
      await store.commit(next, "s", { kind: "step" });
      const { steps, progress } = await store.journal(ref("a"));
      expect([steps.has("s"), progress.size]).toEqual([true, 0]);
    });

    test("that are missing show a lost worker, once per interval", async () => {
      await beat(await start("a"));
      await beat(await start("b"), "s", 3_600_000);
      const { lost, nextMs } = await store.silent("w");
      expect(lost).toEqual([{ id: "a", lease: 1 }]);
      expect(nextMs).toBeGreaterThan(1_000);
      expect(nextMs).toBeLessThanOrEqual(5_000);
      expect((await store.silent("w")).lost).toEqual([]);
    });

    test.each<{ what: string; later: (held: Held) => Promise<unknown> }>([
      { what: "the step is recorded", later: (held) => store.commit(held, "s", { kind: "step" }) },
      {
        what: "its attempt has failed",
        later: (held) => store.note(held, "s", { attempts: 1, delayMs: 5, heartbeat }),
      },
      { what: "another execution has begun", later: () => claim(store, "a", 2) },
      {
        what: "its execution has left the run",
        later: (held) => store.leave(held, { kind: "waiting" }),
      },
      { what: "the run has ended", later: (held) => store.leave(held, done) },
      { what: "the run was terminated", later: () => store.terminate(ref("a"), {}) },
    ])("count no longer once $what", async ({ later }) => {
      const held = await start();
      await beat(held);
      await later(held);
      expect(await store.silent("w")).toEqual({ lost: [] });
    });

    test("count per step, from the last one", async () => {
      const held = await start();
      await beat(held, "s");
      await beat(held, "t", 3_600_000);
      await beat(held, "s", 3_600_000);
      const { lost, nextMs } = await store.silent("w");
      expect(lost).toEqual([]);
      expect(nextMs).toBeGreaterThan(3_000_000);
      await beat(held, "t");
      expect((await store.silent("w")).lost).toEqual([{ id: "a", lease: 1 }]);
    });
  });

  describe("terminate", () => {
    const request = { by: "ann", reason: "the object is gone" };
    const message = "the run was terminated by ann: the object is gone";
    const terminate = (id: string) => store.terminate(ref(id), request);

    test.each<{ status: string; how?: Leave }>([
      { status: "queued" },
      { status: "running" },
      { status: "waiting", how: { kind: "waiting", objects: ["x/v1/x/default/o"] } },
      { status: "blocked", how: { kind: "blocked", reason: "no code", untilMs: 9_000 } },
      {
        status: "compensating",
        how: { kind: "compensating", failing: { status: "failed", error: stepFailed } },
      },
    ])("ends a run that is $status, and fences its execution", async ({ status, how }) => {
      const notify = "pools/default/x/_/web";
      await store.start(newRun("a", { key: "k", parent: { ...ref("p"), step: "a" }, notify }));
      const held = status === "queued" ? undefined : await claim(store, "a");
      if (held !== undefined) {
        await store.watch(held, ["x/v1/x/default/o"]);
        if (how !== undefined) await store.leave(held, how);
      }
      expect(await store.get(ref("a"))).toMatchObject({ status });
      const followers = { parent: ref("p"), notify };
      expect(await terminate("a")).toEqual({ kind: "terminated", ...followers });
      const run = await store.get(ref("a"));
      expect(run).toMatchObject({
        status: "cancelled",
        terminated: request,
        error: { code: "terminated", message },
        endedAtMs: expect.any(Number) as number,
      });
      expect(run).not.toHaveProperty("blockedReason");
      if (held !== undefined) {
        const late = [
          () => store.commit(held, "late", { kind: "step" }),
          () => store.note(held, "late", { attempts: 1, delayMs: 1 }),
          () => store.watch(held, ["x/v1/x/default/p"]),
          () => store.leave(held, done),
        ];
        for (const write of late) await expect(write()).rejects.toThrow(FencedError);
        expect(await store.holds(held)).toBe(false);
        expect((await store.fences("w")).get("a")).toBeGreaterThan(held.epoch);
      }
      expect(await store.claim(ref("a"), { lease: 9, owner: "o9" })).toEqual({
        kind: "ended",
        ...followers,
      });
      expect(await store.start(newRun("b", { key: "k", onExisting: "reject" }))).toEqual({
        kind: "created",
      });
    });

    test("may be repeated, but does not change a run that has ended otherwise", async () => {
      await store.start(newRun("a"));
      expect([await terminate("a"), await terminate("a")]).toEqual([
        { kind: "terminated" },
        { kind: "terminated" },
      ]);
      expect(await store.terminate(ref("a"), { by: "bob" })).toEqual({ kind: "ended" });
      await complete(store, newRun("b"));
      expect(await terminate("b")).toEqual({ kind: "ended" });
      expect(await store.get(ref("b"))).toMatchObject({ status: "done" });
      expect(await terminate("nobody")).toEqual({ kind: "missing" });
    });

    test("a terminated successor leaves the key to the run that it waits for", async () => {
      const behind = (id: string) => newRun(id, { key: "k", onExisting: "supersede" });
      await store.start(newRun("a", { key: "k" }));
      const held = await claim(store, "a");
      await store.start(behind("b"));
      await terminate("b");
      const attached = { ...behind("c"), onExisting: "attach" } as const;
      expect(await store.start(attached)).toEqual({ kind: "attached", id: "a" });
      await store.start(behind("c"));
      await store.start(behind("d"));
      await terminate("c");
      const waits = { lease: 1, owner: "o1" };
      expect(await store.claim(ref("d"), waits)).toEqual({ kind: "waiting" });
      expect(await store.leave(held, done)).toEqual({ next: ref("d") });
      expect(await store.claim(ref("d"), waits)).toMatchObject({ kind: "held" });
    });

    test("successors terminated from the last one on leave the key to the active run", async () => {
      const behind = (id: string) => newRun(id, { key: "k", onExisting: "queue" });
      await store.start(newRun("a", { key: "k" }));
      const held = await claim(store, "a");
      await store.start(behind("b"));
      await store.start(behind("c"));
      await terminate("c");
      await terminate("b");
      const attached = { ...behind("d"), onExisting: "attach" } as const;
      expect(await store.start(attached)).toEqual({ kind: "attached", id: "a" });
      await store.start(behind("d"));
      expect(await store.leave(held, done)).toEqual({ next: ref("d") });
    });
  });

  describe("a spread step", () => {
    /** Starts a run, and the step "s" as it does. */
    async function begin(id = "a") {
      await store.start(newRun(id));
      const held = await claim(store, id);
      const spread = spreadStepOf(held, "s");
      const stored = refOfSpread(spread);
      const parent = { ...ref(id), step: "s" };
      const start = async () =>
        await store.start({ ...stored, version: 1, input: { spread }, parent });
      expect(await start()).toMatchObject({ kind: "created" });
      return { held, spread, stored, start };
    }
    const noted = async (id = "a") => (await store.journal(ref(id))).progress.get("s");

    test("may begin until its run has ended", async () => {
      const { held, spread } = await begin();
      expect(await store.admitSpread(spread)).toBe("active");
      expect(await store.isSpreadAwaited(spread)).toBe(true);
      await store.leave(held, done);
      expect(await store.admitSpread(spread)).toBe("over");
      expect(await store.isSpreadAwaited(spread)).toBe(false);
    });

    test("is not that of a later round, of a retry, or of another run with the id", async () => {
      const { held, spread } = await begin();
      for (const other of [
        { round: 2 },
        { reopened: 1 },
        { createdAtMs: spread.createdAtMs - 1 },
      ]) {
        expect(await store.isSpreadAwaited({ ...spread, ...other })).toBe(false);
        expect(await store.admitSpread({ ...spread, ...other })).toBe("over");
      }
      await store.leave(held, { kind: "continued", input: 2 });
      expect(await store.isSpreadAwaited(spread)).toBe(false);
      expect(await store.isSpreadAwaited({ ...spread, round: 2 })).toBe(true);
    });

    test("has another name after a retry of its run", async () => {
      const { held, spread } = await begin();
      await store.leave(held, { kind: "failed", error: stepFailed });
      const { epoch = 0 } = (await store.retryFacts(ref("a"))) ?? {};
      await store.reopen(ref("a"), { epoch, drop: [], kept: 0, author: {} });
      const again = spreadStepOf(await claim(store, "a", 2), "s");
      expect(again.reopened).toBe(1);
      expect(refOfSpread(again)).not.toEqual(refOfSpread(spread));
      expect(await store.isSpreadAwaited(spread)).toBe(false);
      expect(await store.isSpreadAwaited(again)).toBe(true);
    });

    test("of a paused run is held back, and noted in its run until the step begins", async () => {
      const { spread } = await begin();
      expect(await noted()).not.toHaveProperty("heldBack");
      await store.pause("w", ["a"], { request: {} });
      expect(await store.admitSpread(spread)).toBe("held");
      expect(await noted()).toMatchObject({ heldBack: true });
      await store.resume("w", ["a"]);
      expect(await noted()).toMatchObject({ heldBack: true });
      expect(await store.admitSpread(spread)).toBe("active");
      expect(await noted()).not.toHaveProperty("heldBack");
    });

    test("that no worker can execute makes its run due", async () => {
      const { held, spread } = await begin();
      expect(await store.admitSpread(spread, "always")).toBe("held");
      expect(await noted()).toMatchObject({ heldBack: true });
      const { wakeSeq } = await store.news(held, { signals: [], children: [] });
      expect(wakeSeq).toBe(held.wakeSeq + 1);
    });

    test("ends as a child does: its run is noted and due, and reads the outcome", async () => {
      const { held, stored, start } = await begin();
      const claimed = await store.claim(stored, { lease: 1, owner: "x" });
      if (claimed.kind !== "held") throw new Error(claimed.kind);
      const outcome = { kind: "step", value: { n: 1 }, attempts: 1 };
      expect(await store.leave(claimed, { kind: "done", result: outcome })).toEqual({
        parent: ref("a"),
      });
      expect(await noted()).toMatchObject({ childEnded: true });
      const news = await store.news(held, { signals: [], children: [stored] });
      expect(news).toMatchObject({ ended: [stored], wakeSeq: held.wakeSeq + 1 });
      expect(await store.get(stored)).toMatchObject({ status: "done", result: outcome });
      expect(await start()).toMatchObject({ kind: "exists", run: { result: outcome } });
    });

    test("is in no list, count or bulk action of its workflow", async () => {
      await begin();
      const { runs } = await store.list("w", { limit: 10, filter: {} });
      expect(runs.map(({ id }) => id)).toEqual(["a"]);
      expect(await store.count("w", {})).toEqual({ count: 1 });
      expect(await store.counts("w")).toMatchObject({ queued: 0, running: 1 });
    });

    test("is handed back by code that does not fit while fitting code is live", async () => {
      const { stored } = await begin();
      await store.announce("w", "new", { version: 1, accepts: [] });
      const code = { version: 2, accepts: [] };
      expect(await store.claim(stored, { lease: 1, owner: "x", code })).toEqual({
        kind: "unfit",
        times: 1,
      });
    });

    test("logs with its run until that has ended", async () => {
      const { held, spread } = await begin();
      const line = (message: string) => ({ atMs: 1, level: "info", message, step: "s" }) as const;
      await store.appendSpreadLog(spread, [line("one")]);
      const earlier = { ...spread, createdAtMs: spread.createdAtMs - 1 };
      await store.appendSpreadLog(earlier, [line("of an earlier run with this ID")]);
      await store.leave(held, done);
      await store.appendSpreadLog(spread, [line("two")]);
      expect((await store.logs(ref("a"))).map(({ message }) => message)).toEqual(["one"]);
    });
  });

  test("buffers 1,000 signals, and rejects the next", async () => {
    await store.start(newRun("a"));
    const send = (id: number) => store.signal(ref("a"), { name: "n", id: String(id) });
    const answers = new Set<string>();
    for (let id = 0; id < 1_000; id += 1) answers.add(await send(id));
    expect([...answers]).toEqual(["stored"]);
    expect([await send(1_000), await send(0)]).toEqual(["full", "duplicate"]);
  });

  describe("versions of the code", () => {
    const v1: CodeVersion = { version: 1, accepts: [] };
    const v2 = { version: 2, accepts: [1] };
    const v3 = { version: 3, accepts: [2] };
    const claimBy = async (code: CodeVersion, lease: number) =>
      await store.claim(ref("a"), { lease, owner: `o${lease}`, code });

    test("a claim by code that does not fit changes nothing while fitting code is live", async () => {
      await store.announce("w", "old", v1);
      await store.start(newRun("a", { version: 2 }));
      expect(await claimBy(v1, 1)).toMatchObject({ kind: "held" });
      await store.start(newRun("b", { version: 2 }));
      await store.announce("w", "new", v2);
      const before = await store.get(ref("a"));
      expect(await claimBy(v1, 2)).toEqual({ kind: "unfit", times: 1 });
      expect(await claimBy(v3, 3)).toMatchObject({ kind: "held" });
      expect(await claimBy(v1, 4)).toEqual({ kind: "unfit", times: 1 });
      expect(await claimBy(v1, 5)).toEqual({ kind: "unfit", times: 2 });
      expect(await store.get(ref("a"))).toEqual(before);
      await store.retract("w", "new");
      expect(await store.claim(ref("b"), { lease: 1, owner: "o", code: v1 })).toMatchObject({
        kind: "held",
      });
    });

    test("a run with a step of newer code does not return to older code", async () => {
      for (const code of [v1, v2]) await store.announce("w", `v${code.version}`, code);
      await store.start(newRun("a"));
      const held = await claimBy(v2, 1);
      if (held.kind !== "held") throw new Error(held.kind);
      expect(held.code).toBe(2);
      await store.leave(held, { kind: "waiting" });
      expect(await claimBy(v1, 2)).toMatchObject({ kind: "held" });
      const again = await claimBy(v2, 3);
      if (again.kind !== "held") throw new Error(again.kind);
      await store.commit(again, "s", { kind: "step" });
      await store.leave(again, { kind: "waiting" });
      expect(await claimBy(v1, 4)).toMatchObject({ kind: "unfit" });
      expect(await claimBy(v2, 5)).toMatchObject({ kind: "held", continuedBy: 2 });
    });

    test("a worker that starts receives the blocked runs", async () => {
      expect(await store.announce("w", "one", v1)).toEqual([]);
      await store.start(newRun("a"));
      await store.leave(await claim(store, "a"), { kind: "blocked", reason: "why", untilMs: 1 });
      expect(await store.announce("w", "one", v1)).toEqual([]);
      expect(await store.announce("w", "two", v1)).toEqual(["a"]);
      expect(await store.announce("w", "two", v1)).toEqual([]);
      await store.retract("w", "two");
      expect(await store.announce("w", "two", v1)).toEqual(["a"]);
    });
  });

  describe("after the retention of a run for an object", () => {
    const object = "pools/default/nodepools.x/_/web";
    const forWeb = (generation?: number, uid = "u"): Partial<NewRun> => ({
      key: "k",
      origin: { uid, object, ...defined({ generation }) },
    });
    test.each<{ how: Leave; end: unknown }>([
      { how: done, end: { status: "done", result: 7 } },
      { how: { kind: "failed", error: stepFailed }, end: { status: "failed", error: stepFailed } },
      {
        how: { kind: "cancelled", error: stepFailed },
        end: { status: "cancelled", error: stepFailed },
      },
      { how: { kind: "done", result: "x".repeat(5_000) }, end: { status: "done" } },
    ])("a start returns its end: $how.kind", async ({ how, end }) => {
      await complete(store, newRun("a", forWeb(1)), how);
      await side.expire();
      expect(await store.get(ref("a"))).toBeUndefined();
      const again = newRun("a", forWeb(1));
      expect(await store.start(again)).toEqual({ kind: "attached", id: "a", end });
      await side.expire();
      expect(await store.start(again)).toEqual({ kind: "attached", id: "a", end });
    });

    test.each([
      { title: "the same generation, with another id", run: newRun("b", forWeb(1)), starts: true },
      { title: "a newer generation", run: newRun("b", forWeb(2)), starts: true },
      { title: "an older generation", run: newRun("b", forWeb(0)), starts: false },
      { title: "a recreated object", run: newRun("a", forWeb(1, "v")), starts: true },
      { title: "a retry", run: newRun("a~2", forWeb(1)), starts: true },
      { title: "no object", run: newRun("a", { key: "k" }), starts: true },
    ])("$title starts: $starts", async ({ run, starts }) => {
      await complete(store, newRun("a", forWeb(1)));
      await side.expire();
      expect((await store.start(run)).kind).toBe(starts ? "created" : "attached");
    });

    test("a kind without a generation is known by the id", async () => {
      await complete(store, newRun("a", forWeb()));
      await side.expire();
      expect(await store.start(newRun("a", forWeb()))).toMatchObject({ kind: "attached" });
      expect(await store.start(newRun("b", forWeb()))).toEqual({ kind: "created" });
    });

    test("the end of a retry replaces that of the run", async () => {
      await complete(store, newRun("a", forWeb(1)), { kind: "failed", error: stepFailed });
      await complete(store, newRun("a~2", forWeb(1)));
      await side.expire();
      expect(await store.start(newRun("a", forWeb(1)))).toEqual({
        kind: "attached",
        id: "a~2",
        end: { status: "done", result: 7 },
      });
    });

    test("a released end expires, unless a start for the object comes first", async () => {
      await complete(store, newRun("a", forWeb(1)));
      await side.expire();
      await store.releaseEnd("w", "k");
      expect(await store.start(newRun("a", forWeb(1)))).toMatchObject({ kind: "attached" });
      await side.expire();
      expect(await store.start(newRun("a", forWeb(1)))).toMatchObject({ kind: "attached" });
      await store.releaseEnd("w", "k");
      await side.expire();
      expect(await store.start(newRun("a", forWeb(1)))).toEqual({ kind: "created" });
    });
  });
});

test("the run store in Redis keeps no record of an earlier round, and the last answers", async () => {
  const { store } = openRedis();
  const names = runNames(`${harness.prefix}:${serial - 1}`, "c", "w");
  await store.start(newRun("a"));
  const answerIn = async (round: number) => {
    const update = `${round}`;
    await store.signal(ref("a"), { name: "n", id: update });
    const held = await claim(store, "a", round);
    const [taken] = await store.readSignals(held, "n");
    if (taken === undefined) throw new Error("the signal is missing");
    await store.commit(held, "s", { kind: "update", value: round }, { taken, update });
    await store.leave(held, { kind: "continued", input: round });
  };
  for (let round = 1; round <= 1_005; round += 1) await answerIn(round);
  expect(await harness.redis.exists(names.steps("a"))).toBe(0);
  expect(await harness.redis.hlen(names.answers("a"))).toBe(1_000);
  expect(await harness.redis.llen(names.answeredIds("a"))).toBe(1_000);
  expect(await store.answerTo(ref("a"), "5")).toBeUndefined();
  expect(await store.answerTo(ref("a"), "6")).toMatchObject({ value: 6 });
  expect(await store.get(ref("a"))).toMatchObject({ round: 1_006, input: 1_005 });
});

test("the sweep returns a parent whose child has ended, if nothing else wakes it", async () => {
  const { store } = openRedis();
  const w = newRun("p").workflow;
  await store.start(newRun("p"));
  await store.start(newRun("c", { parent: { ...ref("p"), step: "kid" } }));
  const held = await claim(store, "p");
  await store.leave(await claim(store, "c"), done);
  expect((await store.overdue(w)).runs).not.toContain("p");
  // The parent leaves without knowing of the end.
  await store.leave(held, { kind: "waiting" });
  expect((await store.overdue(w)).runs).toContain("p");
});

test("the sweep returns each kept end once per interval, for its object to be checked", async () => {
  const { store } = openRedis();
  const prefix = `${harness.prefix}:${serial - 1}`;
  const { lastChecks } = runNames(prefix, "c", "w");
  const object = "pools/default/nodepools.x/_/web";
  await complete(store, newRun("a", { key: "k", origin: { uid: "u", generation: 1, object } }));
  expect((await store.overdue("w")).ends).toEqual([]);
  await harness.redis.zadd(lastChecks, "0", "k", "0", "expired");
  expect((await store.overdue("w")).ends).toEqual([{ key: "k", object }]);
  expect((await store.overdue("w")).ends).toEqual([]);
  expect(await harness.redis.zrange(lastChecks, "0", "-1")).toEqual(["k"]);
  await store.releaseEnd("w", "k");
  expect(await harness.redis.exists(lastChecks)).toBe(0);
});

const IDS = ["a", "b", "c", "a~2"] as const;
const id = fc.constantFrom(...IDS);
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const step = fc.constantFrom("s", "t");
const small = fc.constantFrom<unknown>(1, "x", null, { b: [1] });
const output = fc
  .record({ published: fc.dictionary(fc.constantFrom("a", "b"), small) })
  .map(({ published }): RunOutputText => ({ published: JSON.stringify(published) }));
const failure = fc.constantFrom<Failure>(
  { code: "x", message: "y" },
  { code: "x", message: "y", frames: ["at f (a.ts:1:2)", "at g (b.ts:3:4)"] },
);
const origin = fc.record(
  {
    uid: fc.constantFrom("u", "v"),
    generation: fc.integer({ min: 1, max: 3 }),
    object: fc.constantFrom("pools/default/nodepools.x/_/web"),
  },
  { requiredKeys: ["uid"] },
);
const leaves: fc.Arbitrary<Leave> = fc.oneof(
  fc.constant<Leave>({ kind: "waiting", waits: [{ step: "n#2", kind: "signal" }] }),
  fc.constant<Leave>({ kind: "waiting", objects: ["x/v1/x/default/o"] }),
  fc.constant<Leave>({ kind: "blocked", reason: "why", untilMs: 5_000 }),
  failure.map((error): Leave => ({ kind: "blocked", reason: "why", error, untilMs: 5_000 })),
  failure.map((error): Leave => ({ kind: "compensating", failing: { status: "failed", error } })),
  small.map((result): Leave => ({ kind: "done", result })),
  small.map((input): Leave => ({ kind: "continued", input })),
  fc
    .record({ kind: fc.constantFrom("failed", "cancelled"), error: failure })
    .map((leave): Leave => leave),
);

type Op =
  | { readonly op: "start"; readonly run: NewRun }
  | {
      readonly op: "claim";
      readonly id: string;
      readonly lease: number;
      readonly anew: boolean;
      readonly code: CodeVersion | undefined;
    }
  | {
      readonly op: "announce";
      readonly code: AnnouncedCode;
      readonly worker: string;
    }
  | {
      readonly op: "enter";
      readonly id: string;
      readonly old: boolean;
      readonly slot: RunSlot;
    }
  | { readonly op: "sweep" }
  | { readonly op: "retract"; readonly worker: string }
  | {
      readonly op: "commit";
      readonly id: string;
      readonly old: boolean;
      readonly step: string;
      readonly value: unknown;
      readonly takes: boolean;
      readonly cancels: boolean;
      readonly output: RunOutputText | undefined;
    }
  | {
      readonly op: "note";
      readonly id: string;
      readonly old: boolean;
      readonly step: string;
      readonly keep: boolean;
      readonly beats: boolean;
    }
  | {
      readonly op: "publish";
      readonly id: string;
      readonly old: boolean;
      readonly output: RunOutputText;
    }
  | {
      readonly op: "relabel";
      readonly id: string;
      readonly old: boolean;
      readonly labels: Record<string, string>;
    }
  | {
      readonly op: "watch" | "keepInput" | "refuse" | "refuseUpdate" | "news" | "appendLog";
      readonly id: string;
      readonly old: boolean;
    }
  | {
      readonly op: "leave";
      readonly id: string;
      readonly old: boolean;
      readonly how: Leave;
      readonly output: RunOutputText | undefined;
    }
  | { readonly op: "signal"; readonly id: string; readonly signal: string }
  | {
      readonly op: "cancel" | "terminate" | "pause" | "resume";
      readonly id: string;
      readonly also: boolean;
    }
  | { readonly op: "reopen" | "retryUndos"; readonly id: string }
  | { readonly op: "raise"; readonly id: string; readonly steps: number }
  | { readonly op: "skipUndo"; readonly id: string; readonly step: string }
  | { readonly op: "release"; readonly key: string }
  | { readonly op: "expire" };

const key = fc.constantFrom("k", "l");
const code = fc.constantFrom<CodeVersion>(
  { version: 1, accepts: [] },
  { version: 2, accepts: [1] },
  { version: 2, accepts: [] },
);
const announced = fc
  .record({ code, runs: maybe(fc.constantFrom(1, 2)) })
  .map(({ code: version, runs }): AnnouncedCode =>
    runs === undefined ? version : { ...version, concurrency: { runs } },
  );
const labels = fc.dictionary(fc.constantFrom("a", "b"), fc.constantFrom("1", "2"));
const start = fc
  .record({
    id,
    key: maybe(key),
    labels: maybe(labels),
    onExisting: maybe(fc.constantFrom("attach", "reject", "supersede", "queue")),
    maxQueued: maybe(fc.constantFrom(1, 2)),
    parent: maybe(
      fc
        .record({ round: maybe(fc.constantFrom(2, 3)) })
        .map((round) => ({ ...ref("b"), step: "kid", ...round })),
    ),
    by: maybe(fc.constant("ann")),
    scheduledAtMs: maybe(fc.constant(7_000)),
    notify: maybe(fc.constant("pools/default/nodepools.x/_/web")),
    origin: maybe(origin),
  })
  // No run is its own parent: the IDs of children continue those of their parents.
  .map(({ id: run, parent, ...rest }) => {
    const more = { ...rest, ...(parent?.id !== run && { parent }) };
    return {
      op: "start" as const,
      run: JSON.parse(JSON.stringify(newRun(run, more as Partial<NewRun>))) as NewRun,
    };
  });
const old = fc.oneof(
  { weight: 4, arbitrary: fc.constant(false) },
  { weight: 1, arbitrary: fc.constant(true) },
);
const ops: fc.Arbitrary<readonly Op[]> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: start },
    {
      weight: 5,
      arbitrary: fc.record({
        op: fc.constant("claim" as const),
        id,
        lease: fc.integer({ min: 1, max: 5 }),
        anew: fc.boolean(),
        code: maybe(code),
      }),
    },
    {
      weight: 5,
      arbitrary: fc.record({
        op: fc.constant("enter" as const),
        id,
        old,
        slot: fc.record({ slots: fc.constantFrom(1, 2), group: fc.constantFrom("", "", "g") }),
      }),
    },
    { weight: 1, arbitrary: fc.constant({ op: "sweep" as const }) },
    {
      weight: 3,
      arbitrary: fc.record({
        op: fc.constant("commit" as const),
        id,
        old,
        step,
        value: small,
        takes: fc.boolean(),
        cancels: fc.boolean(),
        output: maybe(output),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        op: fc.constant("note" as const),
        id,
        old,
        step,
        keep: fc.boolean(),
        beats: fc.boolean(),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ op: fc.constant("publish" as const), id, old, output }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ op: fc.constant("relabel" as const), id, old, labels }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        op: fc.constantFrom("watch", "keepInput", "refuse", "refuseUpdate", "news", "appendLog"),
        id,
        old,
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        op: fc.constant("leave" as const),
        id,
        old,
        how: leaves,
        output: maybe(output),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        op: fc.constant("signal" as const),
        id,
        signal: fc.constantFrom("1", "2", "3"),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        op: fc.constantFrom("cancel", "terminate", "pause", "resume"),
        id,
        also: fc.boolean(),
      }),
    },
    { weight: 1, arbitrary: fc.record({ op: fc.constant("skipUndo" as const), id, step }) },
    { weight: 2, arbitrary: fc.record({ op: fc.constantFrom("reopen", "retryUndos"), id }) },
    {
      weight: 1,
      arbitrary: fc.record({
        op: fc.constant("raise" as const),
        id,
        steps: fc.integer({ min: 1, max: 3 }),
      }),
    },
    { weight: 1, arbitrary: fc.record({ op: fc.constant("release" as const), key }) },
    {
      weight: 1,
      arbitrary: fc.record({
        op: fc.constant("announce" as const),
        code: announced,
        worker: fc.constantFrom("one", "two"),
      }),
    },
    { weight: 1, arbitrary: fc.constant({ op: "retract" as const, worker: "one" }) },
    { weight: 1, arbitrary: fc.constant({ op: "expire" as const }) },
  ),
  { minLength: 10, maxLength: 60 },
);

/** Applies calls to a store as executions do: with what they claimed, possibly before another one did. */
class Caller {
  readonly #side: Side;
  readonly #held = new Map<string, Held[]>();

  constructor(side: Side) {
    this.#side = side;
  }

  async apply(op: Op): Promise<unknown> {
    return await this.#apply(op).catch((thrown: unknown) => ensureError(thrown).name);
  }

  async #apply(op: Op): Promise<unknown> {
    const { store } = this.#side;
    switch (op.op) {
      case "start":
        // Runs that wait are in the order of their starts.
        await this.#side.tick();
        return await store.start(op.run);
      case "sweep":
        // Only the runs that get a slot are in both answers.
        await store.overdue("w");
        return undefined;
      case "claim": {
        const claimed = await store.claim(ref(op.id), {
          lease: op.lease,
          owner: `o${op.lease}`,
          anew: op.anew,
          ...defined({ code: op.code }),
        });
        if (claimed.kind === "held")
          this.#held.set(op.id, [...(this.#held.get(op.id) ?? []), claimed]);
        return claimed;
      }
      case "announce":
        return [...(await store.announce("w", op.worker, op.code))].toSorted();
      case "retract":
        return await store.retract("w", op.worker);
      case "signal":
        return await store.signal(ref(op.id), { name: "n", id: op.signal });
      case "cancel":
        return await store.cancel(ref(op.id), { by: "ann" }, { resumes: op.also });
      case "pause":
        return await store.pause("w", [op.id, "missing"], {
          request: { by: "ann" },
          ...(op.also ? { wanted: "waiting" } : {}),
        });
      case "resume":
        return await store.resume("w", [op.id], op.also ? { wanted: "paused" } : {});
      case "skipUndo":
        return await store.skipUndo(ref(op.id), op.step, { by: "ann" });
      case "reopen":
        return await this.#reopen(ref(op.id));
      case "retryUndos":
        return await store.retryUndos(ref(op.id));
      case "raise":
        return await store.raise(ref(op.id), { steps: op.steps });
      case "terminate":
        return await store.terminate(ref(op.id), { by: "ann", reason: "lost" });
      case "release":
        return await store.releaseEnd("w", op.key);
      case "expire":
        return await this.#side.expire();
      default:
        return await this.#write(op);
    }
  }

  async #reopen(run: ReturnType<typeof ref>): Promise<unknown> {
    const { store } = this.#side;
    const { epoch = 0 } = (await store.retryFacts(run)) ?? {};
    const known = await store.get(run);
    const plan = planResume(await store.steps(run));
    if (plan.kind === "undone") return plan;
    const { drop, kept } = plan;
    const how = { epoch, drop, kept, author: { by: "ann" } };
    return await store.reopen(run, {
      ...how,
      ...(known?.key === undefined ? {} : { key: known.key }),
    });
  }

  async #write(op: Extract<Op, { readonly old: boolean }>): Promise<unknown> {
    const { store } = this.#side;
    const claims = this.#held.get(op.id) ?? [];
    const held = op.old ? claims[0] : claims.at(-1);
    if (held === undefined) return undefined;
    switch (op.op) {
      case "commit": {
        const record: StepRecord = { kind: "step", value: op.value };
        const [taken] = op.takes ? await store.readSignals(held, "n") : [];
        return await store.commit(held, op.step, record, {
          ...(op.cancels && held.run.cancel !== undefined ? { cancels: held.cancels } : {}),
          ...defined({ output: op.output }),
          ...(taken === undefined ? {} : { taken, update: `u${taken.id}` }),
        });
      }
      case "note":
        return await store.note(held, op.step, {
          attempts: 1,
          delayMs: 5,
          keep: op.keep,
          ...(op.beats ? { running: 1, silentMs: 0, heartbeat: { attempt: 1, atMs: 1 } } : {}),
        });
      case "relabel":
        return await store.relabel(held, op.labels);
      case "publish":
        return await store.publish(held, op.output);
      case "appendLog":
        return await store.appendLog(held, [{ atMs: 1, level: "info", message: "m" }], 1);
      case "refuseUpdate": {
        const [signal] = await store.readSignals(held, "n");
        if (signal === undefined) return undefined;
        const update = { ...signal, id: updateSignalId("u") };
        return await store.refuseUpdate(held, update, { message: "no", issues: [] });
      }
      case "refuse": {
        const [signal] = await store.readSignals(held, "n");
        const refused = signal === undefined ? [] : [{ signal, message: "no" }];
        return await store.refuse(held, "n", refused);
      }
      case "news":
        return await store.news(held, { signals: ["n", "m"], children: IDS.map(ref) });
      case "enter":
        return await store.enter(held, op.slot);
      case "keepInput":
        return await store.keepInput(held, { by: claims.indexOf(held) });
      case "watch":
        return await store.watch(held, ["x/v1/x/default/o"]);
      case "leave":
        return await store.leave(held, op.how, op.output);
    }
  }

  async state(): Promise<unknown> {
    const { store } = this.#side;
    const runs = await Promise.all(
      IDS.map(async (run) => ({
        run: await store.get(ref(run)),
        facts: await store.retryFacts(ref(run)),
        overview: await store.peek(ref(run)),
        steps: await store.steps(ref(run)),
        history: await store.history(ref(run)),
        signals: await store.unconsumedSignals(ref(run)),
        refused: await store.refusedSignals(ref(run)),
        logs: await store.logs(ref(run)),
        answers: await Promise.all(
          ["u", "u1", "u2", "u3"].map((update) => store.answerTo(ref(run), update)),
        ),
      })),
    );
    const labelled = await store.list("w", { limit: 10, filter: { labels: { a: "1" } } });
    const found = labelled.runs.map((run) => run.id).toSorted();
    const pausing = [...(await store.pausing("w"))].toSorted();
    return {
      runs,
      cancelling: await store.cancelling("w"),
      pausing,
      found,
    };
  }
}

/** Without times, which two clocks give, and epochs, which are times in one store. */
function comparable(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value ?? null, (name, member: unknown) => {
      if (name.endsWith("Ms") || ["bytes", "epoch", "waitingUntil"].includes(name))
        return undefined;
      if (member instanceof Map) return Object.fromEntries(member);
      return member instanceof Set ? [...(member as Set<string>)].toSorted() : member;
    }),
  );
}

/** Compares the answers and states of Redis with those of a store in memory, after each of some random calls. */
const compare = (openOther: () => Side) =>
  fc.asyncProperty(ops, fc.boolean(), async (calls, isCoded) => {
    const redisSide = isCoded ? coded(openRedis()) : openRedis();
    const [memory, redis] = [new Caller(openOther()), new Caller(redisSide)];
    for (const [at, op] of calls.entries()) {
      const label = `call ${at} ${JSON.stringify(op)}`;
      const answers = [await memory.apply(op), await redis.apply(op)];
      expect(comparable(answers[0]), label).toEqual(comparable(answers[1]));
      expect(comparable(await memory.state()), label).toEqual(comparable(await redis.state()));
    }
  });

test(`both stores give the same answers to random calls (KONVERGE_TEST_SEED=${seed})`, async () => {
  await fc.assert(compare(openMemory), { seed, numRuns });
});

/** A store in memory that differs from the rules in one point. */
const PLANTED: Readonly<Record<string, (store: RunStore) => Partial<RunStore>>> = {
  "a second cancellation counts": (store) => ({
    cancel: async (...args) => {
      const answer = await store.cancel(...args);
      return answer === "pending" ? "requested" : answer;
    },
  }),
  "a pause ignores the wanted status": (store) => ({
    pause: (workflow, ids, { request }) => store.pause(workflow, ids, { request }),
  }),
  "a run supersedes others instead of being rejected": (store) => ({
    start: (run) =>
      store.start(run.onExisting === "reject" ? { ...run, onExisting: "supersede" } : run),
  }),
  "a signal is delivered twice": (store) => {
    let sent = 0;
    return { signal: (run, signal) => store.signal(run, { ...signal, id: `${sent++}` }) };
  },
  "a committed signal is not consumed": (store) => ({
    commit: (held, name, record, { taken: _taken, ...how } = {}) =>
      store.commit(held, name, record, how),
  }),
  "a heartbeat is lost": (store) => ({
    note: (held, name, { heartbeat: _heartbeat, ...progress }) => store.note(held, name, progress),
  }),
};

test.each(Object.keys(PLANTED))("the comparison of both stores finds that %s", async (name) => {
  const open = (): Side => {
    const side = openMemory();
    return { ...side, store: { ...side.store, ...PLANTED[name]?.(side.store) } };
  };
  // A fixed seed, since each difference must be found within these calls.
  const found = await fc.check(compare(open), { seed: 2, numRuns: 300, endOnFailure: true });
  expect(found.failed).toBe(true);
});
