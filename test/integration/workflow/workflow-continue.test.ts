import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { defineWorkflow, type Workflow } from "@konverge/workflow";
import { continueScript } from "../../../libs/workflow/src/store/scripts/continue.ts";
import { useChildren } from "../../support/child.ts";
import { until } from "../../support/until.ts";
import type { DeathPoint } from "./die-at-call.ts";
import { ended, inStatus, useWorkflows } from "./workflow-harness.ts";
import type { RoundsChildConfig } from "./workflow-rounds-child.ts";
import { begunList, countedSet, makeCounter, makeRounds } from "./workflow-samples.ts";
import { isLongRun } from "../../support/test-run.ts";

const ROUNDS = isLongRun ? 300 : 60;
const KILLS = isLongRun ? 20 : 2;
const SIGNALS = isLongRun ? 100 : 40;
/** A killed worker's run continues after it. */
const LEASE_MS = 2_000;
/** Of workers that are not killed: on a busy machine, they must not lose their leases. */
const LIVE_LEASE_MS = 6_000;
const CHILD = fileURLToPath(new URL("workflow-rounds-child.ts", import.meta.url));
const PRELOAD = new URL("die-at-call.ts", import.meta.url).href;

const harness = useWorkflows();
const start = useChildren();

function config(): string {
  const { url, prefix } = harness;
  return JSON.stringify({ url, prefix, leaseMs: LEASE_MS } satisfies RoundsChildConfig);
}

async function memoryOf(id: string): Promise<number> {
  const { redis, prefix } = harness;
  let bytes = 0;
  for (const name of await redis.keys(`${prefix}:{default/workflows}/*/counter/${id}`)) {
    bytes += (await redis.memory("USAGE", name)) ?? 0;
  }
  return bytes;
}

test(`a counter that is passed through ${ROUNDS} rounds is exact although ${KILLS} workers are killed, and the run does not grow`, async () => {
  const { prefix, redis } = harness;
  const runs = harness.openRuns({ leaseMs: LIVE_LEASE_MS });
  const counter = makeCounter(redis, prefix);
  const ref = { workflow: "counter", id: "r" };
  await runs.start(counter, { n: 0, to: ROUNDS }, { id: "r", key: "k", by: "ann" });
  let largest = 0;
  for (let kill = 1; kill <= KILLS; kill += 1) {
    const worker = start([CHILD, config()]);
    const round = Math.floor((kill * ROUNDS) / (KILLS + 1));
    await until(
      `round ${round}`,
      async () => ((await runs.get(ref))?.round ?? 1) >= round,
      180_000,
    );
    largest = Math.max(largest, await memoryOf("r"));
    await worker.end("SIGKILL");
  }
  runs.work({ workflows: [counter], workerId: "last" });
  const run = await until(
    "the run ends",
    async () => {
      const known = await runs.get(ref);
      return known?.endedAtMs === undefined ? undefined : known;
    },
    180_000,
  );
  expect(run).toMatchObject({
    status: "done",
    result: ROUNDS,
    round: ROUNDS,
    key: "k",
    by: "ann",
    published: { n: ROUNDS },
  });
  expect(await redis.scard(countedSet(prefix))).toBe(ROUNDS);
  expect((await runs.steps(ref)).map(({ name, seq }) => [name, seq])).toEqual([["add", 1]]);
  // Numbers with more digits, and the end.
  expect(await memoryOf("r")).toBeLessThan(largest + 1_024);
});

test.each([
  { name: "before a round ends", when: "before" },
  {
    name: "when a round has ended, its response lost and the next one not requested",
    when: "after",
  },
] as const)("P9: kill -9 $name", async ({ when }) => {
  const { prefix, redis } = harness;
  await redis.script("LOAD", continueScript.lua);
  const runs = harness.openRuns({ leaseMs: LIVE_LEASE_MS });
  const { rounds, child } = makeRounds(redis, prefix);
  const ref = { workflow: "rounds", id: "r" };
  await runs.start(rounds, 0, { id: "r" });
  for (const payload of [1, 10, 100]) await runs.signal(ref, "go", { payload });
  const point: DeathPoint = { sha: continueScript.sha, when, having: ["rounds/r"] };
  const dying = start([`--import=${PRELOAD}`, CHILD, config()], {
    DIE_AT_CALL: JSON.stringify(point),
  });
  expect(await dying.exited).toEqual([null, "SIGKILL"]);
  runs.work({ workflows: [rounds, child], workerId: "second" });
  expect(await ended(runs, rounds, "r")).toMatchObject({ status: "done", result: 222, round: 3 });
  expect(await redis.lrange(begunList(prefix), 0, -1)).toEqual([
    "begin 1",
    "double 1",
    "begin 2",
    "double 10",
    "begin 3",
    "double 100",
  ]);
});

test("signals that arrive while rounds change are each consumed once, in order", async () => {
  const workflow = defineWorkflow(
    "inbox",
    { version: 1 },
    async (w, seen: readonly number[]): Promise<readonly number[]> => {
      const next = [...seen, await w.signal<number>("go")];
      return next.length === SIGNALS ? next : await w.continueWith(next);
    },
  );
  const runs = harness.openRuns();
  for (const workerId of ["one", "two"])
    harness.openRuns().work({ workflows: [workflow], workerId });
  const ref = { workflow: "inbox", id: "r" };
  await runs.start(workflow, [], { id: "r" });
  for (let n = 0; n < SIGNALS; n += 1) await runs.signal(ref, "go", { payload: n, id: `s${n}` });
  const { result } = await ended(runs, workflow, "r");
  expect(result).toEqual(Array.from({ length: SIGNALS }, (_, n) => n));
});

test("updates are answered in every round, and a parent waits for the last one", async () => {
  const child: Workflow<number, number> = defineWorkflow(
    "kid",
    { version: 1 },
    async (w, n: number): Promise<number> => {
      const sum = await w.handle("add", { parse: Number }, (more) => n + more);
      return w.round === 5 ? sum : await w.continueWith(sum);
    },
  );
  const parent: Workflow<undefined, number> = defineWorkflow(
    "parent",
    { version: 1 },
    async (w) => await w.child("kid", child, 0),
  );
  const runs = harness.openRuns();
  runs.work({ workflows: [parent, child], workerId: "test" });
  await runs.start(parent, undefined, { id: "p" });
  const ref = { workflow: "kid", id: "p.kid" };
  await inStatus(runs, child, "p.kid", "waiting");
  for (let n = 1; n <= 5; n += 1) {
    const { id } = await runs.update(ref, "add", { payload: n });
    const answer = await until("the update is answered", () => runs.answerTo(ref, id));
    expect(answer).toMatchObject({ kind: "accepted", value: (n * (n + 1)) / 2 });
  }
  expect(await ended(runs, parent, "p")).toMatchObject({ status: "done", result: 15 });
});

test("a start that is repeated with the first input returns the run; another input is rejected", async () => {
  const { prefix, redis } = harness;
  const counter = makeCounter(redis, prefix);
  const runs = harness.openRuns();
  const first = { n: 0, to: 3 };
  await runs.start(counter, first, { id: "r" });
  runs.work({ workflows: [counter], workerId: "test" });
  await ended(runs, counter, "r");
  expect(await runs.start(counter, first, { id: "r" })).toMatchObject({ id: "r", created: false });
  const last = { n: 2, to: 3 };
  expect((await runs.get({ workflow: "counter", id: "r" }))?.input).toEqual(last);
  await expect(runs.start(counter, last, { id: "r" })).rejects.toMatchObject({
    code: "input_mismatch",
  });
});

test("the next round takes the newest version of a live worker", async () => {
  const version = (number: number) =>
    defineWorkflow(
      "upgrade",
      { version: number, accepts: number === 1 ? [] : [1] },
      async (w, versions: readonly number[]): Promise<readonly number[]> => {
        await w.signal("go");
        const seen = [...versions, w.version];
        return seen.length === 2 ? seen : await w.continueWith(seen);
      },
    );
  const runs = harness.openRuns();
  const ref = { workflow: "upgrade", id: "r" };
  harness.openRuns().work({ workflows: [version(1)], workerId: "old" });
  await runs.start(version(1), [], { id: "r" });
  await inStatus(runs, version(1), "r", "waiting");
  harness.openRuns().work({ workflows: [version(2)], workerId: "new" });
  await until("the new worker is live", async () => {
    const codes = await harness.redis.hvals(`${harness.prefix}:{default/workflows}/codes/upgrade`);
    return codes.some((code) => code.endsWith(" 2,1"));
  });
  await runs.signal(ref, "go");
  await until("the next round", async () => (await runs.get(ref))?.round === 2);
  await runs.signal(ref, "go");
  expect(await ended(runs, version(2), "r")).toMatchObject({ result: [1, 2], version: 2 });
});

test("a run that is cancelled between two rounds is cancelled, and undoes only its last round", async () => {
  const undone: number[] = [];
  const workflow = defineWorkflow(
    "endless",
    { version: 1 },
    async (w, n: number): Promise<void> => {
      await w.step("act", async () => n, { undo: (result) => void undone.push(result ?? -1) });
      await w.continueWith(n + 1);
    },
  );
  const runs = harness.openRuns();
  runs.work({ workflows: [workflow], workerId: "test" });
  const ref = { workflow: "endless", id: "r" };
  await runs.start(workflow, 1, { id: "r" });
  await until("some rounds", async () => ((await runs.get(ref))?.round ?? 1) > 5);
  await runs.cancel(ref, { reason: "enough" });
  const run = await ended(runs, workflow, "r");
  expect(run).toMatchObject({ status: "cancelled", cancel: { reason: "enough" } });
  // None, if the cancellation came before the first step of the round.
  expect(undone.filter((n) => n !== run.input)).toEqual([]);
});
