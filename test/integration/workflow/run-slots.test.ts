import * as fc from "fast-check";
import { expect, test } from "vitest";
import { TerminalError } from "@konverge/core";
import { defineWorkflow, type WorkflowContext } from "@konverge/workflow";
import type { Held } from "../../../libs/workflow/src/store/run-journal-store.ts";
import { runNames } from "../../../libs/workflow/src/store/run-names.ts";
import { watchCommands } from "../../contract/watch-commands.ts";
import { until } from "../../support/until.ts";
import { fleetSteps, openStore, SlotFleet } from "./slot-fleet.ts";
import { ended, inStatus, useWorkflows } from "./workflow-harness.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

const harness = useWorkflows();
const ref = (id: string) => ({ workflow: "w", id });

let serial = 0;
test(`runs under way never exceed the slots, and none waits for a free one (seed ${seed})`, async () => {
  const property = fc.asyncProperty(fleetSteps, async (all) => {
    const fleet = new SlotFleet(harness.redis, `${harness.prefix}:${(serial += 1)}`);
    await fleet.begin();
    for (const [at, step] of all.entries()) {
      try {
        await fleet.apply(step);
        await fleet.check();
      } catch (error) {
        throw new Error(`step ${at} ${JSON.stringify(step)}`, { cause: error });
      }
    }
    await fleet.drain();
  });
  await fc.assert(property, { seed, numRuns: isLongRun ? 150 : 12 });
});

test("an entry and an end cost the same with any number of waiting runs", async () => {
  using watched = await watchCommands(harness.url);
  let lease = 0;
  const costFor = async (waiting: number): Promise<readonly number[]> => {
    const prefix = `${harness.prefix}:${waiting}`;
    const store = openStore(harness.redis, prefix);
    const enter = async (id: string): Promise<Held> => {
      await store.start({ ...ref(id), version: 1, input: null });
      const held = await store.claim(ref(id), { lease: (lease += 1), owner: `o${lease}` });
      if (held.kind !== "held") throw new Error(`run ${id} is ${held.kind}`);
      await store.enter(held, { slots: 1, group: "" });
      return held;
    };
    const first = await enter("first");
    for (let n = 0; n < waiting; n += 1) await enter(`run-${n}`);
    const count = async (call: () => Promise<unknown>): Promise<number> => {
      const [begin, end] = [crypto.randomUUID(), crypto.randomUUID()];
      await harness.redis.echo(begin);
      await call();
      await harness.redis.echo(end);
      const placeOf = (mark: string) => watched.commands.findIndex(({ args }) => args[1] === mark);
      await until("Redis has shown the calls", () => placeOf(end) >= 0);
      const made = watched.commands.slice(placeOf(begin), placeOf(end));
      return made.filter(({ args }) => args.some((arg) => arg.startsWith(prefix))).length;
    };
    return [
      await count(() => enter("last")),
      await count(() => store.leave(first, { kind: "done", result: 1 })),
    ];
  };
  expect(await costFor(500)).toEqual(await costFor(5));
});

test("a sweep frees the slots of runs that were deleted, or that a worker without slots has ended", async () => {
  const { redis, prefix } = harness;
  const store = openStore(redis, prefix);
  const claim = (id: string, lease: number) => store.claim(ref(id), { lease, owner: `o${lease}` });
  for (const id of ["a", "b", "c"]) {
    await store.start({ ...ref(id), version: 1, input: null });
    const held = await claim(id, 1);
    if (held.kind === "held") await store.enter(held, { slots: 1, group: "" });
  }
  expect(await claim("b", 2)).toEqual({ kind: "waiting" });
  const { run } = runNames(prefix, "c", "w");
  await redis.del(run("a"));
  expect((await store.overdue("w")).runs).toContain("b");
  expect(await claim("b", 3)).toMatchObject({ kind: "held", hasSlot: true });
  await redis.hset(run("b"), "status", "done");
  expect((await store.overdue("w")).runs).toContain("c");
  expect(await claim("c", 3)).toMatchObject({ kind: "held", hasSlot: true });
});

test("a sweep gives a changed number of slots to all keys", async () => {
  const store = openStore(harness.redis, harness.prefix);
  const deploy = (runs: number) =>
    store.announce("w", `worker ${runs}`, { version: 1, accepts: [], concurrency: { runs } });
  await deploy(1);
  const waiting: string[] = [];
  for (let n = 0; n < 60; n += 1) {
    const id = `run-${n}`;
    await store.start({ ...ref(id), version: 1, input: null });
    const held = await store.claim(ref(id), { lease: 1, owner: id });
    if (held.kind !== "held") throw new Error(held.kind);
    if ((await store.enter(held, { slots: 1, group: `key ${n % 30}` })) === "waiting")
      waiting.push(id);
  }
  expect(waiting).toHaveLength(30);
  await deploy(2);
  expect([...(await store.overdue("w")).runs].toSorted()).toEqual(waiting.toSorted());
});

test("a retried run that waits for a slot can be cancelled: it undoes its steps", async () => {
  const undone: string[] = [];
  const deploy = defineWorkflow(
    "deploy",
    { version: 1, concurrency: { runs: 1 } },
    async (w, fails: boolean) => {
      await w.step("create", () => 1, { undo: () => void undone.push(w.runId) });
      await w.signal("go");
      await w.step("check", () => (fails ? Promise.reject(new Error("no")) : 1), {
        retry: { attempts: 1 },
      });
    },
  );
  const runs = harness.openRuns();
  runs.work({ workflows: [deploy], workerId: "test" });
  const of = (id: string) => ({ workflow: "deploy", id });
  await runs.start(deploy, true, { id: "a" });
  await inStatus(runs, deploy, "a", "waiting");
  await runs.terminate(of("a"));
  await runs.start(deploy, false, { id: "b" });
  await inStatus(runs, deploy, "b", "waiting");
  await runs.retry(of("a"), { fromFailed: true });
  await until("it waits for a slot", async () => (await runs.get(of("a")))?.slotWait);
  await runs.cancel(of("a"));
  expect(await ended(runs, deploy, "a")).toMatchObject({ status: "cancelled" });
  expect(undone).toEqual(["a"]);
  expect((await runs.get(of("b")))?.status).toBe("waiting");
});

test("a run begins as soon as another one ends, however that ends", async () => {
  const deploy = defineWorkflow(
    "deploy",
    { version: 1, concurrency: { runs: 1 } },
    async (w, fails: boolean) => {
      await w.signal("go");
      if (fails) throw new TerminalError("no");
    },
  );
  const runs = harness.openRuns();
  // Nothing is left to the sweep.
  runs.work({ workflows: [deploy], workerId: "test", sweepEveryMs: 3_600_000 });
  const ids = ["a", "b", "c", "d", "e"];
  for (const id of ids) await runs.start(deploy, id === "b", { id });
  const of = (id: string) => ({ workflow: "deploy", id });
  const begun = async (id: string) => await inStatus(runs, deploy, id, "waiting");
  await begun("a");
  const last = await until("the last run waits for the others", async () => {
    const run = await runs.get(of("e"));
    return run?.slotWait?.ahead === 3 ? run : undefined;
  });
  expect(last).toMatchObject({ status: "queued", slotWait: { ahead: 3 } });
  expect(last.startedAtMs).toBeUndefined();
  await runs.signal(of("a"), "go");
  await begun("b");
  await runs.signal(of("b"), "go");
  await begun("c");
  // A paused run keeps its slot, and one that waits for a slot loses its place.
  await runs.pause(of("c"));
  await runs.pause(of("d"));
  await runs.resume(of("c"));
  await runs.cancel(of("c"));
  await begun("e");
  await runs.resume(of("d"));
  await until("the resumed run waits again", async () => (await runs.get(of("d")))?.slotWait);
  await runs.terminate(of("e"));
  await begun("d");
  await runs.signal(of("d"), "go");
  expect((await ended(runs, deploy, "d")).status).toBe("done");
  expect((await ended(runs, deploy, "b")).status).toBe("failed");
});

test("a run that is cancelled or terminated while it waits for a slot does not begin", async () => {
  const begun: string[] = [];
  const deploy = defineWorkflow("deploy", { version: 1, concurrency: { runs: 1 } }, async (w) => {
    begun.push(w.runId);
    await w.signal("go");
  });
  const runs = harness.openRuns();
  runs.work({ workflows: [deploy], workerId: "test" });
  const of = (id: string) => ({ workflow: "deploy", id });
  await runs.start(deploy, undefined, { id: "a" });
  await inStatus(runs, deploy, "a", "waiting");
  for (const id of ["b", "c"]) {
    await runs.start(deploy, undefined, { id });
    await until("it waits", async () => (await runs.get(of(id)))?.slotWait);
  }
  await runs.cancel(of("b"), { by: "ann", reason: "too late" });
  expect(await ended(runs, deploy, "b")).toMatchObject({
    status: "cancelled",
    error: { message: "the run was cancelled by ann: too late" },
  });
  await runs.terminate(of("c"));
  await runs.start(deploy, undefined, { id: "d", key: "k" });
  await until("it waits", async () => (await runs.get(of("d")))?.slotWait);
  // A run that replaces one without a slot.
  await runs.start(deploy, undefined, { id: "e", key: "k", onExisting: "supersede" });
  expect((await ended(runs, deploy, "d")).status).toBe("cancelled");
  await until("its successor waits", async () => (await runs.get(of("e")))?.slotWait);
  await runs.signal(of("a"), "go");
  await inStatus(runs, deploy, "e", "waiting");
  expect(begun).toEqual(expect.arrayContaining(["a", "e"]));
  expect(new Set(begun)).toEqual(new Set(["a", "e"]));
});

test("runs of a killed worker keep their slots until other workers have ended them", async () => {
  const active = new Map<string, Set<string>>();
  const most = new Map<string, number>();
  const deploy = defineWorkflow(
    "deploy",
    { version: 1, concurrency: { runs: 2, label: "team" } },
    async (w, team: string) => {
      await w.step("begin", () => {
        const own = active.get(team) ?? new Set();
        active.set(team, own.add(w.runId));
        most.set(team, Math.max(most.get(team) ?? 0, own.size));
      });
      await w.signal("go");
      await w.step("end", () => void active.get(team)?.delete(w.runId));
    },
  );
  const [first, second] = [
    harness.openRuns({ leaseMs: 3_000 }),
    harness.openRuns({ leaseMs: 3_000 }),
  ];
  const killed = first.work({ workflows: [deploy], workerId: "one" });
  const ids = Array.from({ length: 12 }, (_, n) => `run-${n}`);
  for (const [n, id] of ids.entries()) {
    const team = n % 2 === 0 ? "a" : "b";
    await second.start(deploy, team, { id, labels: { team } });
  }
  await until(
    "both teams have two runs",
    () => [...active.values()].length === 2 && [...active.values()].every(({ size }) => size === 2),
  );
  second.work({ workflows: [deploy], workerId: "two" });
  await killed.kill();
  for (const id of ids) await second.signal({ workflow: "deploy", id }, "go");
  for (const id of ids) expect((await ended(second, deploy, id)).status).toBe("done");
  expect([...most]).toEqual([
    ["a", 2],
    ["b", 2],
  ]);
});

test("a worker that starts with more slots, or without a limit, lets the waiting runs begin", async () => {
  const run = async (w: WorkflowContext) => await w.signal("go");
  const withSlots = (runs: number) =>
    defineWorkflow("deploy", { version: 1, concurrency: { runs } }, run);
  const runs = harness.openRuns();
  const ids = ["a", "b", "c", "d"];
  let worker = runs.work({ workflows: [withSlots(1)], workerId: "1", sweepEveryMs: 100 });
  for (const id of ids) await runs.start(withSlots(1), undefined, { id });
  const waiting = async () => (await runs.counts("deploy")).waiting;
  for (const [workflow, count] of [
    [withSlots(1), 1],
    [withSlots(3), 3],
    [defineWorkflow("deploy", { version: 1 }, run), 4],
  ] as const) {
    await worker.stop();
    worker = runs.work({ workflows: [workflow], workerId: String(count), sweepEveryMs: 100 });
    const begun = until(`${count} runs have begun`, async () => (await waiting()) === count);
    expect(await begun).toBe(true);
  }
});

test("a spread step runs in the slot of its run", async () => {
  const encode = defineWorkflow("encode", { version: 1, concurrency: { runs: 1 } }, async (w) => {
    return await w.step("part", () => w.runId, { spread: true });
  });
  const runs = harness.openRuns();
  runs.work({ workflows: [encode], workerId: "test" });
  for (const id of ["a", "b"]) await runs.start(encode, undefined, { id });
  for (const id of ["a", "b"]) {
    expect(await ended(runs, encode, id)).toMatchObject({ status: "done", result: id });
  }
});
