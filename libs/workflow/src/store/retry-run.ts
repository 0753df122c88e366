import { defined, KonvergeError } from "@konverge/core";
import { runScript, type RedisClient } from "@konverge/redis";
import { planResume } from "./plan-resume.ts";
import type { RunNames } from "./run-names.ts";
import type { RunRef } from "../define/run-ref.ts";
import type { NewRun } from "./run-actions.ts";
import type { RetryRequest, RunView } from "./run-record.ts";
import type { RunQueries } from "./run-queries.ts";
import { resumeScript } from "./scripts/resume.ts";

export interface RetryRunOptions {
  /** Goes on with the same run, behind what succeeded, in place of a new run from the start. */
  readonly fromFailed?: boolean;
  /** In which a new run starts. Default: that of the old one. */
  readonly version?: number;
  readonly by?: string;
  readonly reason?: string;
}

export interface RunRetrier {
  readonly store: RunQueries;
  readonly call: <T>(run: (redis: RedisClient) => Promise<T>) => Promise<T>;
  readonly namesOf: (workflow: string) => RunNames;
  /** Creates a run, or finds that it is there. */
  readonly start: (run: NewRun) => Promise<void>;
  readonly wake: (ref: RunRef, reason: string) => Promise<void>;
}

/** Ids of further tries: that of the first, a tilde and a number from 2. */
const TRY = /^([^]*)~(\d{1,3})$/;
const MAX_TRIES = 999;
/** In the steps of a run: until when an undo that failed waits. */
const UNDO_PROGRESS = /^undo:[^]*~$/;

/**
 * Tries a run again that failed or was cancelled, and answers the run that goes on; one that is stuck is looked at at once.
 * @throws KonvergeError `not_found`, `run_active`, `run_ended`, `run_exists`, `run_compensated`
 */
export async function retryRun(
  retrier: RunRetrier,
  ref: RunRef,
  options: RetryRunOptions,
): Promise<RunRef> {
  const run = await retrier.store.get(ref);
  switch (run?.status) {
    case undefined:
      throw new KonvergeError("not_found", `there is no run ${ref.id} of "${ref.workflow}"`);
    case "queued":
    case "running":
    case "waiting":
    case "compensating":
      throw new KonvergeError(
        "run_active",
        `run ${ref.id} of "${ref.workflow}" is ${run.status} and goes on by itself: wait for its end, or cancel it`,
      );
    case "done":
      throw new KonvergeError(
        "run_ended",
        `run ${ref.id} of "${ref.workflow}" is done, there is nothing to try again: start another one`,
      );
    case "blocked":
      return await lookAgain(retrier, ref);
    case "failed":
    case "cancelled":
      return options.fromFailed === true
        ? await resume(retrier, run, options)
        : await beginAnew(retrier, run, options);
  }
}

/** The next try: the first one that has not ended, or a new one behind those that failed. */
async function beginAnew(
  retrier: RunRetrier,
  { workflow, id, input, key, ...run }: RunView,
  { version = run.version, by, reason }: RetryRunOptions,
): Promise<RunRef> {
  const [, base = id, number = "1"] = TRY.exec(id) ?? [];
  for (let tried = Number(number); tried < MAX_TRIES; tried += 1) {
    const next = { workflow, id: `${base}~${tried + 1}` };
    const known = await retrier.store.get(next);
    if (known?.status === "failed" || known?.status === "cancelled") continue;
    if (known !== undefined) return next;
    // Who is told of the end, and for what it is, stays.
    const [uid, generation, notify] = await retrier.call((redis) =>
      redis.hmget(retrier.namesOf(workflow).run(id), "uid", "generation", "notify"),
    );
    await retrier.start({
      ...next,
      version,
      input,
      onExisting: "reject",
      retry: { originalRun: id, ...authorOf(by, reason) },
      ...defined({ key, by }),
      ...(uid ? { origin: { uid, generation: Number(generation) } } : {}),
      ...(notify ? { notify } : {}),
    });
    return next;
  }
  throw new KonvergeError(
    "run_ended",
    `run ${base} of "${workflow}" was tried ${MAX_TRIES} times: start another one`,
  );
}

async function resume(
  retrier: RunRetrier,
  { workflow, id, key }: RunView,
  options: RetryRunOptions,
): Promise<RunRef> {
  const { store, call, namesOf, wake } = retrier;
  const ref = { workflow, id };
  const names = namesOf(workflow);
  // Before the steps: if it goes on and ends meanwhile, the script finds another epoch.
  const epoch = await call((redis) => redis.hget(names.run(id), "epoch"));
  const plan = planResume(await store.steps(ref));
  if (plan.kind === "undone") {
    throw new KonvergeError(
      "run_compensated",
      `run ${id} of "${workflow}" has undone "${plan.step}", so it cannot go on from there: begin it anew, without going on from what failed`,
    );
  }
  // First, so that the parent finds them at work; if this one cannot follow, they have done no harm.
  for (const child of plan.children) {
    const run = await store.get(child);
    if (run?.status === "failed" || run?.status === "cancelled")
      await resume(retrier, run, options);
  }
  const fields = await call((redis) => redis.hkeys(names.steps(id)));
  const dropped = [...plan.drop, ...fields.filter((field) => field.endsWith("~"))];
  const answer = await call((redis) =>
    runScript(redis, resumeScript, {
      keys: {
        run: names.run(id),
        steps: names.steps(id),
        signals: names.signals(id),
        seen: names.seen(id),
        wakes: names.wakes,
        endedRuns: names.ended,
        holder: names.holder(key ?? ""),
      },
      args: {
        id,
        epoch: epoch ?? "",
        runRoot: names.runRoot,
        statuses: names.statuses,
        author: JSON.stringify(authorOf(options.by, options.reason)),
        kept: plan.kept,
      },
      each: dropped.map((field) => ({ field })),
    }),
  );
  if (answer.kind === "rejected") {
    throw new KonvergeError(
      "run_exists",
      `run ${answer.holder} of "${workflow}" holds the key "${key}" and has not ended: wait for it or cancel it`,
    );
  }
  // Changed: somebody else was faster, and it goes on.
  await wake(ref, "retry");
  return ref;
}

async function lookAgain({ call, namesOf, wake }: RunRetrier, ref: RunRef): Promise<RunRef> {
  const steps = namesOf(ref.workflow).steps(ref.id);
  const fields = await call((redis) => redis.hkeys(steps));
  const waiting = fields.filter((field) => UNDO_PROGRESS.test(field));
  if (waiting.length > 0) await call((redis) => redis.hdel(steps, ...waiting));
  await wake(ref, "retry");
  return ref;
}

function authorOf(by: string | undefined, reason: string | undefined): RetryRequest {
  return { ...defined({ by, reason }) };
}
