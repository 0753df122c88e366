import { spawn, type ChildProcess } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { openWorkflows, type Workflows } from "@konverge/workflow";
import { seededRandom } from "../../apps/cli/src/demo/seeded-random.ts";
import { pollUntil } from "./poll-until.ts";
import {
  makeInterpreter,
  makeProgram,
  predict,
  traceNames,
  undoableOf,
} from "./workflow-programs.ts";

const seed = Number(process.env["KONVERGE_TEST_SEED"] ?? randomInt(2 ** 31));
const isLong = process.env["KONVERGE_TEST_LONG"] === "1";
const RUNS = isLong ? 3_000 : 60;
const DISASTERS = isLong ? 40 : 6;
const LEASE_MS = 1_000;
const WORKERS = 2;
const CONCURRENCY = 8;
const HEAL_MS = 120_000;
const url = process.env["REDIS_URL"] ?? "";
const WORKER = fileURLToPath(new URL("workflow-worker.ts", import.meta.url));

test(
  `P8, P9: random workflows come to what was predicted while their workers are killed and stopped (KONVERGE_TEST_SEED=${seed})`,
  { timeout: isLong ? 900_000 : 240_000 },
  async () => {
    const random = seededRandom(seed);
    const prefix = `test-wf-${process.pid}-${Date.now()}`;
    const redis = new Redis(url);
    const workflows = openWorkflows({ redis: { url }, prefix, leaseMs: LEASE_MS });
    const workers: ChildProcess[] = [];
    onTestFinished(async () => {
      for (const worker of workers) worker.kill("SIGKILL");
      await workflows.close();
      for await (const keys of redis.scanStream({ match: `${prefix}:*`, count: 1_000 })) {
        if (keys.length > 0) await redis.unlink(...(keys as string[]));
      }
      await redis.quit();
    });
    let serial = 0;
    const startWorker = async (slot: number) => {
      const config = { url, prefix, leaseMs: LEASE_MS, workerId: `w${(serial += 1)}` };
      const worker = spawn(
        process.execPath,
        ["--conditions=@konverge/source", WORKER, JSON.stringify(config)],
        { stdio: ["ignore", "pipe", "inherit"] },
      );
      workers[slot] = worker;
      await once(worker.stdout, "data");
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
      if (random() < 0.5) {
        const exited = once(workers[slot] as ChildProcess, "exit");
        workers[slot]?.kill("SIGKILL");
        await exited;
        await startWorker(slot);
      } else {
        // Past its lease: somebody else has its runs when it goes on.
        workers[slot]?.kill("SIGSTOP");
        await pause(LEASE_MS * 2);
        workers[slot]?.kill("SIGCONT");
      }
    }
    await sending;

    const open = new Set(programs.map(({ id }) => id));
    await pollUntil(
      "all runs end",
      async () => {
        for (const id of open) {
          const run = await workflows.get({ workflow: "program", id });
          if (run?.endedAtMs !== undefined) open.delete(id);
        }
        return open.size === 0;
      },
      isLong ? HEAL_MS * 4 : HEAL_MS,
    ).catch((error: unknown) => {
      throw new Error(`${open.size} runs did not end: ${[...open].slice(0, 5).join(", ")}`, {
        cause: error,
      });
    });

    const wrong: string[] = [];
    const names = traceNames(prefix);
    const tries = await redis.hgetall(names.tries);
    let again = 0;
    for (const { id, program } of programs) {
      const ref = { workflow: "program", id };
      const run = await workflows.get(ref);
      const predicted = predict(program, id);
      const got = program.fails ? run?.error?.message : run?.result;
      const wanted = program.fails ? `as planned: ${predicted.sum}` : predicted.sum;
      if (got !== wanted) wrong.push(`${id}: ${String(got)} in place of ${wanted}`);
      for (const [step, times] of predicted.tries) {
        const extra = Number(tries[step] ?? 0) - times;
        again += Math.max(0, extra);
        if (extra < 0 || extra > DISASTERS)
          wrong.push(`${step}: ${extra} tries more than predicted`);
      }
      // I2, I6: in the order of the program, and nothing before a sleep is over.
      const steps = await workflows.steps(ref);
      const at = new Map(steps.map((step) => [step.name, step]));
      let before = 0;
      for (const op of program.ops) {
        const record = op.kind === "step" || op.kind === "sleep" ? at.get(op.name) : undefined;
        if (record === undefined) continue;
        if ((record.atMs ?? 0) < before)
          wrong.push(`${id}/${record.name}: before what comes before it`);
        before = record.untilMs ?? record.atMs ?? 0;
      }
      // I8: what was recorded and can be undone, in reverse.
      const undone = [...new Set(await redis.lrange(names.undone(id), 0, -1))];
      const undoable = steps
        .filter(({ kind }) => kind === "undo")
        .map(({ name }) => name.slice("undo:".length));
      if (undone.join() !== undoable.join())
        wrong.push(`${id}: undone ${undone.join()}, recorded ${undoable.join()}`);
      const reverse = steps.map(({ name }) => name).filter((name) => undoable.includes(name));
      if (undoable.join() !== reverse.toReversed().join()) wrong.push(`${id}: undone out of order`);
      const wantUndone = program.fails ? undoableOf(program.ops) : [];
      if (undone.toSorted().join() !== wantUndone.toSorted().join()) {
        wrong.push(`${id}: undone ${undone.join()}, planned ${wantUndone.join()}`);
      }
    }
    console.log(`${RUNS} runs, ${DISASTERS} disasters, ${again} tries again`);
    expect(wrong).toEqual([]);
    // I3: no execution saw another value than the first.
    expect(await redis.lrange(names.changed, 0, -1)).toEqual([]);
    // I4: at most what was in flight where a worker was lost; branches are at most three.
    expect(again).toBeLessThanOrEqual(DISASTERS * CONCURRENCY * 3);
  },
);

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
      // Whoever is not sure that it arrived sends it again.
      if (random() < 0.2) await workflows.signal(ref, "signal", message).catch(() => undefined);
      run.next += 1;
    }
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
