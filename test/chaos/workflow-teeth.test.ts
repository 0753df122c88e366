import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { afterEach, expect, test } from "vitest";
import { openWorkflows } from "@konverge/workflow";
import { WORKFLOW_PATCHES } from "./teeth/workflow-patches.ts";
import { checkRun, type RunFindings } from "./workflow-invariants.ts";
import { makeInterpreter, traceNames, type Program } from "./workflow-programs.ts";
import { PATIENT_MS } from "../support/patient.ts";
import { until } from "../support/until.ts";
import { Child } from "../support/child.ts";

/** Proves that `workflows.test.ts` can fail: without the fence, or without "the first record stays", its checks find a wrong run. */

const url = process.env["REDIS_URL"] ?? "";
/** Long enough that a busy machine does not delay a renewal beyond it. */
const LEASE_MS = 2_000;
const WORKER = fileURLToPath(new URL("workflow-worker.ts", import.meta.url));
const PRELOAD = new URL("teeth/load-patched.ts", import.meta.url).href;
const STEPS = 8;
const program: Program = {
  ops: Array.from({ length: STEPS }, (_, index) => ({
    kind: "step",
    name: `n${index}`,
    value: 1,
    failures: 0,
    takesMs: 150,
    undo: false,
  })),
  fails: false,
};

const workers: Child[] = [];
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const worker of workers.splice(0)) worker.signal("SIGKILL");
  await Promise.all(closers.splice(0).map((close) => close()));
});

/** A worker is stopped in a body until another one has taken the run over, and then runs in parallel. */
async function playZombie(patch?: keyof typeof WORKFLOW_PATCHES) {
  const prefix = `test-teeth-${process.pid}-${Date.now()}`;
  const redis = new Redis(url);
  const workflows = openWorkflows({
    redis: { url, deadlineMs: PATIENT_MS },
    prefix,
    leaseMs: LEASE_MS,
  });
  closers.push(async () => {
    await workflows.close();
    for await (const keys of redis.scanStream({ match: `${prefix}:*`, count: 1_000 })) {
      if (keys.length > 0) await redis.unlink(...(keys as string[]));
    }
    await redis.quit();
  });
  const names = traceNames(prefix);
  const startWorker = async (workerId: string) => {
    const config = { url, prefix, leaseMs: LEASE_MS, workerId, concurrency: 1 };
    const preload = patch === undefined ? [] : [`--import=${PRELOAD}`];
    const worker = new Child([...preload, WORKER, JSON.stringify(config)], {
      env: patch === undefined ? {} : { FLEET_PATCH: patch },
    });
    workers.push(worker);
    await worker.ready;
    return worker;
  };
  const ref = { workflow: "program", id: "r" };
  const isRecorded = async (step: string) =>
    (await workflows.steps(ref)).some(({ name }) => name === step);

  await workflows.start(makeInterpreter(redis, prefix), program, { id: ref.id });
  const zombie = await startWorker("zombie");
  await until("the second body has started", () =>
    redis.hexists(names.tries, "r/n1").then(Boolean),
  );
  zombie.signal("SIGSTOP");
  const doneBefore = await redis.hget(names.did, "zombie");
  await startWorker("successor");
  await until("the successor is beyond that body", () => isRecorded("n2"));
  zombie.signal("SIGCONT");
  await until(
    "the body of the zombie ends",
    async () => (await redis.hget(names.did, "zombie")) !== doneBefore,
  );
  return {
    async findings(): Promise<RunFindings> {
      const [run, steps, tries, seen, woke] = await Promise.all([
        workflows.get(ref),
        workflows.steps(ref),
        redis.hgetall(names.tries),
        redis.hgetall(names.seen),
        redis.hgetall(names.woke),
      ]);
      return checkRun({ id: ref.id, program, run, steps, tries, seen, woke, undone: [] });
    },
    async ended() {
      const hasEnded = async () => (await workflows.get(ref))?.endedAtMs !== undefined;
      await until("the run ends", hasEnded);
    },
  };
}

const triesAgain = ({ again }: RunFindings) => again.reduce((sum, one) => sum + one, 0);

test("with both protections a zombie changes nothing: only its current body ran twice", async () => {
  const run = await playZombie();
  await run.ended();
  const findings = await run.findings();
  expect(findings.wrong).toEqual([]);
  expect(triesAgain(findings)).toBeLessThanOrEqual(1);
});

test("I4: without the fence, bodies run again without a lost execution", async () => {
  const run = await playZombie("fence");
  await run.ended();
  const again = async () => triesAgain(await run.findings());
  await expect.poll(again).toBeGreaterThan(1);
});

test("I3: without the first record, the journal differs from what the code saw", async () => {
  const run = await playZombie("first-record");
  await run.ended();
  const wrong = async () => (await run.findings()).wrong;
  await expect.poll(wrong).toContainEqual(expect.stringContaining("I3: the code saw"));
});
