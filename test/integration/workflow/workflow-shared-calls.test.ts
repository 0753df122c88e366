import { Redis, type Command } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { defineWorkflow } from "@konverge/workflow";
import { runNames } from "../../../libs/workflow/src/store/run-names.ts";
import { createRedisRunStore } from "../../../libs/workflow/src/store/redis-run-store.ts";
import type { Held } from "../../../libs/workflow/src/store/run-journal-store.ts";
import { claimScript } from "../../../libs/workflow/src/store/scripts/claim.ts";
import { commitStepsScript } from "../../../libs/workflow/src/store/scripts/commit-steps.ts";
import { leaveScript } from "../../../libs/workflow/src/store/scripts/leave.ts";
import { ended, useWorkflows } from "./workflow-harness.ts";

const harness = useWorkflows();
const STEPS = 5;

/** Counts the calls of each of these scripts by this process, with their arguments. */
function countCalls(): Map<string, { calls: number; args: number }> {
  const counted = new Map<string, { calls: number; args: number }>();
  const names = new Map([claimScript, commitStepsScript, leaveScript].map((s) => [s.sha, s.name]));
  // oxlint-disable-next-line typescript/unbound-method -- called with its own `this` below
  const { sendCommand } = Redis.prototype;
  Redis.prototype.sendCommand = function counting(this: Redis, command: Command, stream) {
    const name = names.get(String(command.args[0]));
    if (name !== undefined) {
      const { calls, args } = counted.get(name) ?? { calls: 0, args: 0 };
      counted.set(name, { calls: calls + 1, args: args + command.args.length });
    }
    return sendCommand.call(this, command, stream);
  };
  onTestFinished(() => void (Redis.prototype.sendCommand = sendCommand));
  return counted;
}

function openStore() {
  const { prefix, redis } = harness;
  return createRedisRunStore({
    call: (run) => run(redis),
    prefix,
    cluster: "default",
    retentionMs: 3_600_000,
  });
}

const refOf = (n: number) => ({ workflow: "w", id: `r${n}` });

/** Claims runs in one turn of the event loop. */
async function claimAll(store: ReturnType<typeof openStore>, runs: readonly number[]) {
  const claims = runs.map(async (n) => await store.claim(refOf(n), { lease: 1, owner: `o${n}` }));
  return (await Promise.all(claims)).map((claimed) => {
    if (claimed.kind !== "held") throw new Error(`the claim is ${claimed.kind}`);
    return claimed;
  });
}

async function startAll(store: ReturnType<typeof openStore>, runs: readonly number[]) {
  for (const n of runs) await store.start({ ...refOf(n), version: 1, input: n });
}

test("a run of five steps costs 7 round trips alone, with at most 10 arguments for each record", async () => {
  const counted = countCalls();
  const workflows = harness.openRuns();
  const workflow = defineWorkflow("five", { version: 1 }, async (w) => {
    for (let n = 0; n < STEPS; n += 1) await w.step(`step ${n}`, async () => n);
  });
  await workflows.start(workflow, undefined, { id: "r" });
  const worker = workflows.work({ workflows: [workflow], concurrency: 1 });
  await ended(workflows, workflow, "r");
  await worker.stop();
  expect(Object.fromEntries(counted)).toEqual({
    [claimScript.name]: { calls: 1, args: 2 + 14 },
    [commitStepsScript.name]: { calls: STEPS, args: STEPS * (2 + 5) },
    [leaveScript.name]: { calls: 1, args: 2 + 29 },
  });
});

test("runs that are claimed, continue and end in one turn share the calls of Redis, 8 at a time", async () => {
  const store = openStore();
  const runs = Array.from({ length: 16 }, (_, n) => n);
  await startAll(store, runs);
  const counted = countCalls();
  const helds = await claimAll(store, runs);
  expect(helds.map(({ id, run }) => [id, run.input])).toEqual(runs.map((n) => [`r${n}`, n]));
  const records = await Promise.all(
    helds.map(async (held, n) => await store.commit(held, "s", { kind: "step", value: n })),
  );
  expect(records.map(({ value, seq }) => [value, seq])).toEqual(runs.map((n) => [n, 1]));
  await Promise.all(
    helds.map(async (held, n) => await store.leave(held, { kind: "done", result: n })),
  );
  expect([...counted].map(([name, { calls }]) => [name, calls])).toEqual(
    [claimScript, commitStepsScript, leaveScript].map(({ name }) => [name, 2]),
  );
  const results = await Promise.all(runs.map(async (n) => await store.get(refOf(n))));
  expect(results.map((run) => [run?.status, run?.result])).toEqual(runs.map((n) => ["done", n]));
});

test("a record that Redis rejects, one of a lost execution and one that is known do not affect the others of their call", async () => {
  const { prefix, redis } = harness;
  const store = openStore();
  const names = runNames(prefix, "default", "w");
  await startAll(store, [0, 1, 2, 3]);
  const helds = await claimAll(store, [0, 1, 2, 3]);
  const commit = async (held: Held, value: string) =>
    await store.commit(held, "s", { kind: "step", value });
  const [known] = await Promise.all(helds.slice(0, 1).map((held) => commit(held, "known")));
  await store.claim(refOf(1), { lease: 2, owner: "other" });
  await redis.set(names.steps("r2"), "a text");
  const settled = await Promise.allSettled(helds.map((held) => commit(held, "new")));
  expect(settled).toMatchObject([
    { status: "fulfilled", value: known },
    { status: "rejected", reason: { name: "FencedError" } },
    { status: "rejected", reason: { message: expect.stringContaining("WRONGTYPE") as string } },
    { status: "fulfilled", value: { value: "new", seq: 1 } },
  ]);
  expect((await store.steps(refOf(3))).get("s")).toMatchObject({ value: "new", seq: 1 });
});

test("runs with long journals are claimed with calls of their own", async () => {
  const store = openStore();
  await startAll(store, [0, 1, 2]);
  const counted = countCalls();
  const helds = await claimAll(store, [0, 1, 2]);
  for (const held of helds) {
    for (let n = 0; n < 150; n += 1) await store.commit(held, `s${n}`, { kind: "step", value: n });
    await store.leave(held, { kind: "waiting" });
  }
  counted.clear();
  const again = await Promise.all(
    helds.map(async ({ id }) => await store.claim({ workflow: "w", id }, { lease: 2, owner: id })),
  );
  expect(again.map((held) => (held.kind === "held" ? held.steps.size : held.kind))).toEqual([
    150, 150, 150,
  ]);
  expect(counted.get(claimScript.name)?.calls).toBe(3);
});

test("a claim that is repeated because of another run of its call does not count as a lost worker", async () => {
  const store = openStore();
  await startAll(store, [0]);
  await harness.redis.set(runNames(harness.prefix, "default", "w").run("r1"), "a text");
  const claims = [0, 1].map(async (n) => await store.claim(refOf(n), { lease: 1, owner: `o${n}` }));
  expect(await Promise.allSettled(claims)).toMatchObject([
    { status: "fulfilled", value: { kind: "held", died: false } },
    { status: "rejected", reason: { message: expect.stringContaining("WRONGTYPE") as string } },
  ]);
});
