import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { RUN_STATUSES } from "@konverge/core";
import { formatKey } from "@konverge/core";
import { Queue } from "bullmq";
import { expect, onTestFinished, test } from "vitest";
import { openWorkflows, type Workflows } from "@konverge/workflow";
import { seededRandom } from "../../apps/demo/src/load/seeded-random.ts";
import { runNames } from "../../libs/workflow/src/store/run-names.ts";
import { keyOfRun, queueOfWorkflow } from "../../libs/workflow/src/define/run-ref.ts";
import { retryJobsOfRuns } from "./rogue-queue.ts";
import { checkRun, type RunFindings } from "./workflow-invariants.ts";
import { makeInterpreter, makeProgram, predict, traceNames } from "./workflow-programs.ts";
import { PATIENT_MS } from "../support/patient.ts";
import { until } from "../support/until.ts";
import { Child } from "../support/child.ts";
import { isLongRun, seed } from "../support/test-run.ts";

const RUNS = isLongRun ? 600 : 60;
const DISASTERS = isLongRun ? 20 : 6;
/** One of this many disasters includes retries of jobs. */
const RETRIED = 3;
const LEASE_MS = 1_000;
const WORKERS = 2;
const CONCURRENCY = 8;
/** Bodies that each worker must run at the end. */
const TAIL = 5;
const url = process.env["REDIS_URL"] ?? "";
const WORKER = fileURLToPath(new URL("workflow-worker.ts", import.meta.url));

test(`P8, P9: random workflows match their prediction while their workers are killed and paused (KONVERGE_TEST_SEED=${seed})`, async () => {
  const random = seededRandom(seed);
  const prefix = `test-wf-${process.pid}-${Date.now()}`;
  const redis = new Redis(url);
  const workflows = openWorkflows({
    redis: { url, deadlineMs: PATIENT_MS },
    prefix,
    leaseMs: LEASE_MS,
  });
  const queue = new Queue(queueOfWorkflow("program"), {
    connection: { url },
    prefix: `${prefix}:{default}`,
    skipMetasUpdate: true,
  });
  const workers: Child[] = [];
  onTestFinished(async () => {
    for (const worker of workers) worker.signal("SIGKILL");
    await workflows.close();
    await queue.close();
    for await (const keys of redis.scanStream({ match: `${prefix}:*`, count: 1_000 })) {
      if (keys.length > 0) await redis.unlink(...(keys as string[]));
    }
    await redis.quit();
  });
  let serial = 0;
  const workerIds: string[] = [];
  const startWorker = async (slot: number) => {
    const workerId = `w${(serial += 1)}`;
    workerIds[slot] = workerId;
    const config = { url, prefix, leaseMs: LEASE_MS, workerId, concurrency: CONCURRENCY };
    const worker = new Child([WORKER, JSON.stringify(config)]);
    workers[slot] = worker;
    await worker.ready;
  };
  const slots = Array.from({ length: WORKERS }, (_, slot) => slot);
  await Promise.all(slots.map(startWorker));

  const interpreter = makeInterpreter(redis, prefix);
  const programs = Array.from({ length: RUNS }, (_, index) => ({
    id: `r${index}`,
    program: makeProgram(random),
  }));
  for (const { id, program } of programs) await workflows.start(interpreter, program, { id });

  const sending = sendSignals(workflows, programs, random);
  for (let disaster = 0; disaster < DISASTERS; disaster += 1) {
    const slot = Math.floor(random() * WORKERS);
    await pause(random() * 600);
    // In parallel: jobs are retried with BullMQ.
    const retrying = disaster % RETRIED === 0 ? retryJobs(queue, seed + disaster) : undefined;
    if (random() < 0.5) {
      await workers[slot]?.kill();
      await startWorker(slot);
    } else {
      // Longer than its lease: another worker has its runs when it continues.
      workers[slot]?.signal("SIGSTOP");
      await pause(LEASE_MS * 2);
      workers[slot]?.signal("SIGCONT");
    }
    await retrying;
  }
  const healMs = performance.now();
  await sending;

  const open = new Set(programs.map(({ id }) => id));
  await until("I1: all runs end", async () => {
    for (const id of open) {
      const run = await workflows.get({ workflow: "program", id });
      if (run?.endedAtMs !== undefined) open.delete(id);
    }
    return open.size === 0;
  }).catch((error: unknown) => {
    throw new Error(`${open.size} runs did not end: ${[...open].slice(0, 5).join(", ")}`, {
      cause: error,
    });
  });
  const healedMs = performance.now() - healMs;

  const names = traceNames(prefix);
  const tries = await redis.hgetall(names.tries);
  const seen = await redis.hgetall(names.seen);
  const woke = await redis.hgetall(names.woke);
  const most = await redis.hgetall(names.most);
  const findings: RunFindings[] = [];
  for (const { id, program } of programs) {
    const ref = { workflow: "program", id };
    const [run, steps, undone] = await Promise.all([
      workflows.get(ref),
      workflows.steps(ref),
      redis.lrange(names.undone(id), 0, -1),
    ]);
    findings.push(checkRun({ id, program, run, steps, tries, seen, woke, undone }));
  }
  const again = findings.flatMap((each) => each.again);
  const late = findings.flatMap(({ lateMs }) => lateMs).toSorted((a, b) => a - b);
  const sum = again.reduce((all, one) => all + one, 0);
  console.log(
    `${RUNS} runs, ${DISASTERS} disasters; all had ended ${Math.round(healedMs)} ms after the last; ` +
      `${sum} repeated tries, at most ${Math.max(...again)} of one step; sleeps p50 ${late[late.length >> 1]} ms, ` +
      `p99 ${late[Math.floor(late.length * 0.99)]} ms late; at most ${Math.max(...Object.values(most).map(Number))} runs in progress at the same time`,
  );
  expect(findings.flatMap(({ wrong }) => wrong)).toEqual([]);
  expect(await findMisplaced(redis, prefix)).toEqual([]);
  // I3: no execution saw another value than the first.
  expect(await redis.lrange(names.changed, 0, -1)).toEqual([]);
  // I4: one more try for each lost execution and each body in flight there, with at most three branches.
  expect(Math.max(...again)).toBeLessThanOrEqual(DISASTERS);
  expect(sum).toBeLessThanOrEqual(DISASTERS * CONCURRENCY * 3);
  // I9
  for (const [worker, runs] of Object.entries(most)) {
    expect(Number(runs), worker).toBeLessThanOrEqual(CONCURRENCY);
  }
  await expectLively(workflows, interpreter, {
    bodiesOf: async (slot) => Number(await redis.hget(names.did, workerIds[slot] ?? "")),
    slots,
  });
});

async function retryJobs(queue: Queue, of: number): Promise<void> {
  const random = seededRandom(of);
  const keys = Array.from({ length: 10 }, () => {
    const id = `r${Math.floor(random() * RUNS)}`;
    return formatKey(keyOfRun({ workflow: "program", id }, "default"));
  });
  await retryJobsOfRuns(queue, keys, random);
}

/** I10: every worker still works after the last disaster. */
async function expectLively(
  workflows: Workflows,
  interpreter: ReturnType<typeof makeInterpreter>,
  {
    bodiesOf,
    slots,
  }: { readonly bodiesOf: (slot: number) => Promise<number>; readonly slots: readonly number[] },
): Promise<void> {
  const name = "only";
  const step = { kind: "step", name, value: 1, failures: 0, takesMs: 20, undo: false } as const;
  const before = await Promise.all(slots.map(bodiesOf));
  const ids: string[] = [];
  await until(`every worker runs ${TAIL} more bodies`, async () => {
    // More than one worker can run at a time.
    for (let n = 0; n <= CONCURRENCY; n += 1) {
      const id = `tail-${ids.length}`;
      await workflows.start(interpreter, { ops: [step], fails: false }, { id });
      ids.push(id);
    }
    const now = await Promise.all(slots.map(bodiesOf));
    return now.every((bodies, slot) => bodies >= (before[slot] ?? 0) + TAIL);
  });
  for (const id of ids) {
    await until(
      `${id} ends`,
      async () => (await workflows.get({ workflow: "program", id }))?.result === 1,
    );
  }
}

/** Runs and children whose index entry has a wrong, no or more than one status. */
async function findMisplaced(redis: Redis, prefix: string): Promise<string[]> {
  const names = runNames(prefix, "default", "program");
  const misplaced: string[] = [];
  for (const id of await redis.zrange(names.index, "0", "-1")) {
    const status = await redis.hget(names.run(id), "status");
    const scores = await Promise.all(
      RUN_STATUSES.map((each) => redis.zscore(`${names.statuses}${each}`, id)),
    );
    const found = RUN_STATUSES.filter((_, at) => scores[at] !== null);
    if (found.join() !== status) misplaced.push(`${id} is ${status}, indexed as ${found.join()}`);
  }
  return misplaced;
}

async function sendSignals(
  workflows: Workflows,
  programs: readonly { readonly id: string; readonly program: Parameters<typeof predict>[0] }[],
  random: () => number,
): Promise<void> {
  const left = programs.map(({ id, program }) => ({
    id,
    next: 1,
    count: predict(program, id).signals,
  }));
  for (let open = left; open.length > 0; open = open.filter(({ next, count }) => next <= count)) {
    for (const run of open) {
      if (run.next > run.count || random() < 0.3) continue;
      const message = { payload: run.next, id: String(run.next) };
      const ref = { workflow: "program", id: run.id };
      await workflows.signal(ref, "signal", message);
      // Sent again if the result is unknown.
      if (random() < 0.2) await workflows.signal(ref, "signal", message).catch(() => undefined);
      run.next += 1;
    }
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
