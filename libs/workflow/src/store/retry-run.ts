import { defined, KonvergeError } from "@konverge/core";
import { runScript, type RedisClient } from "@konverge/redis";
import { planResume } from "./plan-resume.ts";
import type { RunNames } from "./run-names.ts";
import type { RunRef } from "../define/run-ref.ts";
import { undoName } from "../define/undo-name.ts";
import { updateSignalId } from "./run-updates.ts";
import { undosLeft } from "./undos-left.ts";
import type { NewRun, RunActions, RunOrigin } from "./run-actions.ts";
import type { RetryRequest, RunView } from "./run-record.ts";
import type { RunQueries } from "./run-queries.ts";
import { resumeScript } from "./scripts/resume.ts";

export interface RetryRunOptions {
  /** Continues the same run after its successful steps, instead of starting a new run. */
  readonly fromFailed?: boolean;
  /** Version of the new run. Default: that of the old one. */
  readonly version?: number;
  /** A step whose undo is skipped: a blocked compensation continues without it. */
  readonly skipUndo?: string;
  readonly by?: string;
  readonly reason?: string;
}

export interface RunRetrier {
  readonly store: RunQueries & Pick<RunActions, "skipUndo">;
  readonly call: <T>(run: (redis: RedisClient) => Promise<T>) => Promise<T>;
  readonly namesOf: (workflow: string) => RunNames;
  /** Creates a run, unless it exists. */
  readonly start: (run: NewRun) => Promise<void>;
  readonly wake: (ref: RunRef, reason: string) => Promise<void>;
}

/** Ids of retries: the id of the first run, a tilde and a number from 2. */
const RETRY = /^([^]*)~(\d{1,3})$/;
const MAX_RUNS = 999;
/** Field in the steps of a run: the progress of a failed undo. */
const UNDO_PROGRESS = /^undo:[^]*~$/;

/**
 * Retries a failed or cancelled run, or rechecks a blocked one. Returns the run that continues.
 * @throws KonvergeError `not_found`, `run_active`, `run_ended`, `run_exists`, `run_compensated`
 */
export async function retryRun(
  retrier: RunRetrier,
  ref: RunRef,
  options: RetryRunOptions,
): Promise<RunRef> {
  if (options.skipUndo !== undefined) {
    await skipUndo(retrier, ref, { ...options, step: options.skipUndo });
    return await recheck(retrier, ref);
  }
  const run = await retrier.store.get(ref);
  switch (run?.status) {
    case undefined:
      throw new KonvergeError("not_found", `run ${ref.id} of "${ref.workflow}" does not exist`);
    case "queued":
    case "running":
    case "waiting":
    case "compensating":
      throw new KonvergeError(
        "run_active",
        `run ${ref.id} of "${ref.workflow}" is still active (${run.status}); wait for its end, or cancel it`,
      );
    case "done":
      throw new KonvergeError(
        "run_ended",
        `run ${ref.id} of "${ref.workflow}" succeeded and cannot be retried; start a new run`,
      );
    case "pausing":
    case "paused":
      throw new KonvergeError(
        "run_active",
        `run ${ref.id} of "${ref.workflow}" is ${run.status}; resume it first`,
      );
    case "blocked":
      return await recheck(retrier, ref);
    case "failed":
    case "cancelled":
      return options.fromFailed === true
        ? await resume(retrier, run, options)
        : await startAgain(retrier, run, options);
  }
}

/** @throws KonvergeError `not_found`, `invalid_request`, `run_active`, `run_ended` */
async function skipUndo(
  { store }: RunRetrier,
  ref: RunRef,
  { step, by, reason }: RetryRunOptions & { readonly step: string },
): Promise<void> {
  const run = `run ${ref.id} of "${ref.workflow}"`;
  const steps = [...(await store.steps(ref))].map(([name, record]) => ({ ...record, name }));
  const left = undosLeft(steps);
  const isRecorded = steps.some(({ name }) => name === undoName(step));
  const answer =
    left.includes(step) || isRecorded
      ? await store.skipUndo(ref, step, { ...defined({ by, reason }) })
      : (await store.peek(ref)) === undefined
        ? "missing"
        : "unknown";
  switch (answer) {
    case "skipped":
      return;
    case "unknown": {
      const names = left.map((name) => `"${name}"`).join(", ");
      const detail = `${run} has no step "${step}" that is to be undone; left to undo: ${names === "" ? "none" : names}`;
      const issues = [{ pointer: "/skipUndo", detail }];
      throw new KonvergeError("invalid_request", detail, { issues });
    }
    case "active":
      throw new KonvergeError("run_active", `${run} is not being undone; cancel it first`);
    case "ended":
      throw new KonvergeError("run_ended", `${run} has ended`);
    case "missing":
      throw new KonvergeError("not_found", `${run} does not exist`);
  }
}

/** Returns the first retry that has not failed, or starts a new one. */
async function startAgain(
  retrier: RunRetrier,
  { workflow, id, input, key, labels, scheduledAtMs, ...run }: RunView,
  { version = run.version, by, reason }: RetryRunOptions,
): Promise<RunRef> {
  const [, base = id, number = "1"] = RETRY.exec(id) ?? [];
  for (let tried = Number(number); tried < MAX_RUNS; tried += 1) {
    const next = { workflow, id: `${base}~${tried + 1}` };
    const known = await retrier.store.get(next);
    if (known?.status === "failed" || known?.status === "cancelled") continue;
    if (known !== undefined) return next;
    // The retry keeps the object and the key to request at the end.
    const [uid, generation, object, notify] = await retrier.call((redis) =>
      redis.hmget(retrier.namesOf(workflow).run(id), "uid", "generation", "object", "notify"),
    );
    await retrier.start({
      ...next,
      version,
      input,
      onExisting: "reject",
      retry: { originalRun: id, ...authorOf(by, reason) },
      ...defined({ key, labels, by, scheduledAtMs }),
      ...(uid ? { origin: originOf(uid, generation, object) } : {}),
      ...(notify ? { notify } : {}),
    });
    return next;
  }
  throw new KonvergeError(
    "run_ended",
    `run ${base} of "${workflow}" was retried ${MAX_RUNS - 1} times; start a new run`,
  );
}

function originOf(
  uid: string,
  generation: string | null | undefined,
  object: string | null | undefined,
): RunOrigin {
  return {
    uid,
    ...(generation ? { generation: Number(generation) } : {}),
    ...(object ? { object } : {}),
  };
}

async function resume(
  retrier: RunRetrier,
  { workflow, id, key }: RunView,
  options: RetryRunOptions,
): Promise<RunRef> {
  const { store, call, namesOf, wake } = retrier;
  const ref = { workflow, id };
  const names = namesOf(workflow);
  // Read before the steps: if the run resumes and ends meanwhile, the script finds another epoch.
  const epoch = await call((redis) => redis.hget(names.run(id), "epoch"));
  const plan = planResume(await store.steps(ref));
  if (plan.kind === "undone") {
    throw new KonvergeError(
      "run_compensated",
      `run ${id} of "${workflow}" has undone "${plan.step}" and cannot resume; retry it as a new run`,
    );
  }
  // First, so that the parent finds them active; if the parent cannot resume, this is harmless.
  for (const child of plan.children) {
    const run = await store.get(child);
    if (run?.status === "failed" || run?.status === "cancelled")
      await resume(retrier, run, options);
  }
  const fields = await call((redis) => redis.hkeys(names.steps(id)));
  const dropped = [...plan.drop, ...fields.filter((field) => field.endsWith("~"))];
  const updates = await updatesOf(retrier, ref);
  const answer = await call((redis) =>
    runScript(redis, resumeScript, {
      keys: {
        run: names.run(id),
        steps: names.steps(id),
        signals: names.signals(id),
        signalNames: names.signalNames(id),
        refusals: names.refusals(id),
        answers: names.answers(id),
        seen: names.seen(id),
        wakes: names.wakes,
        endedRuns: names.ended,
        holder: names.holder(key ?? ""),
        fences: names.fences,
      },
      args: {
        id,
        epoch: epoch ?? "",
        runRoot: names.runRoot,
        statuses: names.statuses,
        author: JSON.stringify(authorOf(options.by, options.reason)),
        kept: plan.kept,
      },
      each: dropped.map((field) => ({
        field,
        update: updates.get(field) ?? "",
        signal: updates.has(field) ? updateSignalId(updates.get(field) ?? "") : "",
      })),
    }),
  );
  if (answer.kind === "rejected") {
    throw new KonvergeError(
      "run_exists",
      `run ${answer.holder} of "${workflow}" holds the key "${key}" and has not ended; wait for it or cancel it`,
    );
  }
  // `changed`: another retry came first, and the run continues.
  await wake(ref, "retry");
  return ref;
}

/** Returns the ids of the accepted updates, by the step that has accepted them. */
async function updatesOf(
  { call, namesOf }: RunRetrier,
  { workflow, id }: RunRef,
): Promise<ReadonlyMap<string, string>> {
  const answers = await call((redis) => redis.hgetall(namesOf(workflow).answers(id)));
  const accepted = Object.entries(answers).flatMap(([update, text]) => {
    const { step, record } = JSON.parse(text) as Readonly<
      Record<"step" | "record", string | undefined>
    >;
    // With a record it is of an earlier round, whose steps had names of their own.
    return step === undefined || record !== undefined ? [] : [[step, update] as const];
  });
  return new Map(accepted);
}

async function recheck({ call, namesOf, wake }: RunRetrier, ref: RunRef): Promise<RunRef> {
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
