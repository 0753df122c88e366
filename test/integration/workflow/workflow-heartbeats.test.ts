import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { createRedisRunStore } from "../../../libs/workflow/src/store/redis-run-store.ts";
import { commitStepsScript } from "../../../libs/workflow/src/store/scripts/commit-steps.ts";
import { noteScript } from "../../../libs/workflow/src/store/scripts/note.ts";
import type { DeathPoint } from "./die-at-call.ts";
import { runExecution } from "../../../libs/workflow/src/execution/run-execution.ts";
import { noChildren } from "../../support/no-children.ts";
import { makeCopy } from "./heartbeat-sample.ts";
import { ended, useWorkflows } from "./workflow-harness.ts";
import { useChildren } from "../../support/child.ts";
import { until } from "../../support/until.ts";

const harness = useWorkflows();
const CHILD = fileURLToPath(new URL("heartbeat-child.ts", import.meta.url));
const PRELOAD = new URL("die-at-call.ts", import.meta.url).href;
const startChild = useChildren();
/** A lost worker is found by its heartbeats alone: no test waits for this lease. */
const LEASE_MS = 600_000;
const ref = (id: string) => ({ workflow: "copy", id });

async function startInChild() {
  const { url, prefix } = harness;
  const workflows = harness.openRuns({ leaseMs: LEASE_MS });
  const child = startChild([CHILD, url, prefix]);
  const { id } = await workflows.start(makeCopy({}), null);
  await until("the third heartbeat is stored", async () => {
    const { progress } = await workflows.journal(ref(id));
    const { row } = (progress[0]?.heartbeat?.progress ?? {}) as { row?: number };
    return row === 3;
  });
  return { workflows, child, id };
}

test("kill -9 between heartbeats: another worker continues after the last one, without the lease", async () => {
  const { workflows, child, id } = await startInChild();
  await child.kill();
  const second = makeCopy({});
  workflows.work({ workflows: [second], workerId: "second" });
  expect(await ended(workflows, second, id)).toMatchObject({
    status: "done",
    result: "after 3, attempt 2",
  });
  const [copy] = await workflows.steps(ref(id));
  expect(copy).toMatchObject({ name: "copy", attempts: 2, workerLost: true });
});

/** Steps of the child: the begin of the attempt is its first note. */
const POINTS = [
  { name: "attempt noted, before its body", script: noteScript, when: "after", attempts: 2 },
  {
    name: "the body has run, before the commit",
    script: commitStepsScript,
    when: "before",
    attempts: 2,
  },
  { name: "committed, response lost", script: commitStepsScript, when: "after", attempts: 1 },
] as const;

test.each(POINTS)("P9: kill -9 at: $name", async ({ script, when, attempts }) => {
  const { url, prefix, redis } = harness;
  await redis.script("LOAD", script.lua);
  // After the commit, no body is at work, and the lease is what finds the loss.
  const leaseMs = attempts === 1 ? 1_500 : LEASE_MS;
  const workflows = harness.openRuns({ leaseMs });
  const { id } = await workflows.start(makeCopy({}), null);
  const point: DeathPoint = { sha: script.sha, when, having: ["copy"] };
  const dying = startChild([`--import=${PRELOAD}`, CHILD, url, prefix, "no", String(leaseMs)], {
    DIE_AT_CALL: JSON.stringify(point),
  });
  expect(await dying.exited).toEqual([null, "SIGKILL"]);
  const second = makeCopy({});
  workflows.work({ workflows: [second], workerId: "second" });
  expect(await ended(workflows, second, id)).toMatchObject({ status: "done" });
  expect(await workflows.steps(ref(id))).toMatchObject([{ name: "copy", attempts }]);
});

test("P8: a stopped worker that resumes records nothing, and its body is aborted", async () => {
  const { workflows, child, id } = await startInChild();
  child.signal("SIGSTOP");
  const second = makeCopy({});
  workflows.work({ workflows: [second], workerId: "second" });
  const run = await ended(workflows, second, id);
  expect(run).toMatchObject({ result: "after 3, attempt 2" });
  const steps = await workflows.steps(ref(id));
  child.signal("SIGCONT");
  await until("its body is aborted", () => child.output.length === 2);
  child.signal("SIGTERM");
  expect(await child.exited).toEqual([0, null]);
  expect(await workflows.get(ref(id))).toEqual(run);
  expect(await workflows.steps(ref(id))).toEqual(steps);
});

test("a lost worker counts as an attempt of the step", async () => {
  const { workflows, child, id } = await startInChild();
  await child.kill();
  const only = makeCopy({ attempts: 1 });
  workflows.work({ workflows: [only], workerId: "second" });
  expect(await ended(workflows, only, id)).toMatchObject({ status: "failed" });
  const [copy] = await workflows.steps(ref(id));
  expect(copy?.error).toMatchObject({ code: "heartbeat_timeout" });
});

test("a worker that stops releases the attempt, which does not count", async () => {
  const workflows = harness.openRuns({ leaseMs: LEASE_MS });
  const begun = Promise.withResolvers<void>();
  const hung = makeCopy({
    heartbeatTimeout: "10m",
    async atRow(row, ctx) {
      if (row < 2) return;
      begun.resolve();
      await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
      ctx.signal.throwIfAborted();
    },
  });
  const first = workflows.work({ workflows: [hung], workerId: "first" });
  const { id } = await workflows.start(hung, null);
  await begun.promise;
  await first.stop({ graceMs: 0 });
  const { progress } = await workflows.journal(ref(id));
  expect(progress).toMatchObject([{ attempts: 0, heartbeat: { progress: { row: 2 } } }]);
  expect(progress[0]).not.toHaveProperty("running");
  const second = makeCopy({ attempts: 1 });
  workflows.work({ workflows: [second], workerId: "second" });
  expect(await ended(workflows, second, id)).toMatchObject({ result: "after 2, attempt 1" });
});

test("a body that hangs fails its attempt, and the worker keeps the run", async () => {
  const workflows = harness.openRuns({ leaseMs: LEASE_MS });
  const reasons: unknown[] = [];
  const workflow = makeCopy({
    heartbeatTimeout: "1s",
    async atRow(row, ctx) {
      if (row !== 3 || ctx.attempt > 1) return;
      await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
      reasons.push(ctx.signal.reason);
    },
  });
  workflows.work({ workflows: [workflow], workerId: "only" });
  const { id } = await workflows.start(workflow, null);
  expect(await ended(workflows, workflow, id)).toMatchObject({ result: "after 3, attempt 2" });
  expect(reasons).toEqual([expect.objectContaining({ code: "heartbeat_timeout" })]);
  const [copy] = await workflows.steps(ref(id));
  expect(copy).toMatchObject({ attempts: 2 });
  expect(copy).not.toHaveProperty("workerLost");
});

test("10,000 heartbeats in a row are two calls of Redis", async () => {
  const { redis, prefix } = harness;
  let calls = 0;
  const store = createRedisRunStore({
    call: async (run) => {
      calls += 1;
      return await run(redis);
    },
    prefix,
    cluster: "default",
    retentionMs: 3_600_000,
  });
  const workflow = makeCopy({
    heartbeatTimeout: "10m",
    atRow(row, { heartbeat }) {
      for (let at = 0; at < 2_000; at += 1) heartbeat({ row, at });
    },
  });
  await store.start({ ...ref("r"), version: 1, input: null });
  const held = await store.claim(ref("r"), { lease: 1, owner: "o" });
  if (held.kind !== "held") throw new Error(held.kind);
  calls = 0;
  const end = await runExecution({
    store,
    workflow,
    held,
    stopped: new AbortController().signal,
    startChild: noChildren,
    clock: () => performance.now(),
    random: () => 0,
  });
  expect(end).toMatchObject({ kind: "ended", status: "done" });
  // The begin of the attempt and its first heartbeat or none, the record, and the end of the run.
  expect(calls).toBeLessThanOrEqual(4);
});
