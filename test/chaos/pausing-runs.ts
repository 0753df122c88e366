import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { onTestFinished } from "vitest";
import { openWorkflows, type RunRef } from "@konverge/workflow";
import { seededRandom } from "../../apps/demo/src/load/seeded-random.ts";
import { Child } from "../support/child.ts";
import { PATIENT_MS } from "../support/patient.ts";
import { until } from "../support/until.ts";
import { checkRun } from "./workflow-invariants.ts";
import { makeInterpreter, makeProgram, predict, traceNames } from "./workflow-programs.ts";

const url = process.env["REDIS_URL"] ?? "";
const WORKER = fileURLToPath(new URL("workflow-worker.ts", import.meta.url));
const PRELOAD = new URL("teeth/load-patched.ts", import.meta.url).href;
const LEASE_MS = 1_000;
/** Longest time that a run stays paused, in ms: its timers come due, and its wake-ups are handled. */
const REST_MS = 250;
/** Longest time that a run of a test build stays paused until a body begins, in ms. Some have none left, or wait for a signal. */
const BODY_MS = 20_000;

export interface PausingOptions {
  readonly seed: number;
  readonly runs: number;
  /** Pauses of each run. */
  readonly pauses: number;
  readonly kills: number;
  /** The change of the workers' code. Default: none. */
  readonly patch?: string;
}

/** Plays random workflows whose runs are paused, resumed, cancelled and terminated while their workers are killed. Returns what is wrong. */
export async function playPauses({ seed, runs, pauses, kills, patch }: PausingOptions) {
  const random = seededRandom(seed);
  const prefix = `test-pauses-${process.pid}-${Date.now()}`;
  const redis = new Redis(url);
  const workflows = openWorkflows({
    redis: { url, deadlineMs: PATIENT_MS },
    prefix,
    leaseMs: LEASE_MS,
  });
  let worker: Child | undefined;
  onTestFinished(async () => {
    worker?.signal("SIGKILL");
    await workflows.close();
    for await (const keys of redis.scanStream({ match: `${prefix}:*`, count: 1_000 })) {
      if (keys.length > 0) await redis.unlink(...(keys as string[]));
    }
    await redis.quit();
  });
  let serial = 0;
  const startWorker = async () => {
    const config = {
      url,
      prefix,
      leaseMs: LEASE_MS,
      workerId: `w${(serial += 1)}`,
      concurrency: 8,
    };
    const preload = patch === undefined ? [] : [`--import=${PRELOAD}`];
    worker = new Child([...preload, WORKER, JSON.stringify(config)], {
      env: patch === undefined ? {} : { FLEET_PATCH: patch },
    });
    await worker.ready;
  };
  await startWorker();

  const names = traceNames(prefix);
  /** Begun bodies of steps and undos. */
  const begun = async (id: string) => {
    const [tries, undone] = await Promise.all([
      redis.hgetall(names.tries),
      redis.llen(names.undone(id)),
    ]);
    const own = Object.entries(tries).filter(([step]) => step.startsWith(`${id}/`));
    return own.reduce((sum, [, count]) => sum + Number(count), undone);
  };
  const wrong: string[] = [];
  const ended = new Set<string>();
  const play = async (id: string) => {
    const ref = { workflow: "program", id };
    const isOver = async () => (await workflows.get(ref))?.endedAtMs !== undefined;
    for (let count = 0; count < pauses && !(await isOver()); count += 1) {
      await rest(random() * 60);
      await workflows.pause(ref, { by: "ann" }).catch(() => undefined);
      const paused = await until(`${id} is paused or has ended`, async () => {
        const run = await workflows.get(ref);
        return run?.status === "paused" || run?.endedAtMs !== undefined ? run : undefined;
      });
      if (paused.status !== "paused") return;
      const before = await begun(id);
      await restInPause(ref, before);
      const fate = random();
      const action = fate < 0.1 ? "terminate" : fate < 0.2 ? "cancel" : "resume";
      // Terminated first, since that begins no body.
      if (action === "terminate") await apply(action, ref);
      const after = await begun(id);
      if (after !== before) wrong.push(`${id}: ${after - before} bodies began during a pause`);
      if (action !== "resume") ended.add(id);
      if (action !== "terminate") await apply(action, ref);
      if (action !== "resume") return;
    }
  };
  const restInPause = async ({ id }: RunRef, before: number) => {
    const restMs = random() * REST_MS;
    // A test build begins a body in some pauses. How long that takes depends on the load of the machine.
    if (patch === undefined || wrong.length > 0) return await rest(restMs);
    const endMs = performance.now() + BODY_MS;
    while (wrong.length === 0 && performance.now() < endMs && (await begun(id)) === before)
      await rest(10);
  };
  const apply = async (action: "cancel" | "resume" | "terminate", ref: RunRef) => {
    try {
      await workflows[action](ref);
      return true;
    } catch (error) {
      wrong.push(`${ref.id}: ended during a pause: ${String(error)}`);
      return false;
    }
  };
  const interpreter = makeInterpreter(redis, prefix);
  const programs = Array.from({ length: runs }, (_, index) => ({
    id: `r${index}`,
    program: makeProgram(random),
  }));
  for (const { id, program } of programs) await workflows.start(interpreter, program, { id });
  const signal = async ({ id, program }: (typeof programs)[number]) => {
    const { signals } = predict(program, id);
    for (let next = 1; next <= signals; next += 1) {
      await rest(random() * 200);
      const message = { payload: next, id: String(next) };
      await workflows.signal({ workflow: "program", id }, "signal", message).catch(() => undefined);
    }
  };
  const killing = async () => {
    for (let count = 0; count < kills; count += 1) {
      await rest(200 + random() * 600);
      await worker?.kill();
      await startWorker();
    }
  };
  await Promise.all([killing(), ...programs.flatMap((each) => [play(each.id), signal(each)])]);

  for (const { id, program } of programs) {
    const ref = { workflow: "program", id };
    const run = await until(`${id} ends`, async () => {
      const found = await workflows.get(ref);
      return found?.endedAtMs === undefined ? undefined : found;
    });
    if (ended.has(id)) continue;
    const [steps, undone, tries, seen, woke] = await Promise.all([
      workflows.steps(ref),
      redis.lrange(names.undone(id), 0, -1),
      redis.hgetall(names.tries),
      redis.hgetall(names.seen),
      redis.hgetall(names.woke),
    ]);
    wrong.push(...checkRun({ id, program, run, steps, tries, seen, woke, undone }).wrong);
  }
  return { wrong, ended: ended.size };
}

function rest(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
