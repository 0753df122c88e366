import { defined, KonvergeError } from "@konverge/core";
import { planResume } from "./plan-resume.ts";
import type { RunRef } from "../define/run-ref.ts";
import { undoName } from "../define/undo-name.ts";
import { undosLeft } from "./undos-left.ts";
import type { NewRun, RunActions } from "./run-actions.ts";
import type { RetryRequest, RunView } from "./run-record.ts";
import type { RunQueries } from "./run-queries.ts";

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
  readonly store: RunQueries & Pick<RunActions, "skipUndo" | "reopen" | "retryUndos">;
  /** Creates a run, unless it exists. */
  readonly start: (run: NewRun) => Promise<void>;
  readonly wake: (ref: RunRef, reason: string) => Promise<void>;
}

/** Ids of retries: the id of the first run, a tilde and a number from 2. */
const RETRY = /^([^]*)~(\d{1,3})$/;
const MAX_RUNS = 999;

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
    const { origin, notify } = (await retrier.store.retryFacts({ workflow, id })) ?? {};
    await retrier.start({
      ...next,
      version,
      input,
      onExisting: "reject",
      retry: { originalRun: id, ...authorOf(by, reason) },
      ...defined({ key, labels, by, scheduledAtMs, origin, notify }),
    });
    return next;
  }
  throw new KonvergeError(
    "run_ended",
    `run ${base} of "${workflow}" was retried ${MAX_RUNS - 1} times; start a new run`,
  );
}

async function resume(
  retrier: RunRetrier,
  { workflow, id, key }: RunView,
  options: RetryRunOptions,
): Promise<RunRef> {
  const { store, wake } = retrier;
  const ref = { workflow, id };
  // Read before the steps: if the run resumes and ends meanwhile, the store finds another epoch.
  const { epoch = 0 } = (await store.retryFacts(ref)) ?? {};
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
  const { drop, kept } = plan;
  const author = authorOf(options.by, options.reason);
  const answer = await store.reopen(ref, { epoch, drop, kept, author, ...defined({ key }) });
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

async function recheck({ store, wake }: RunRetrier, ref: RunRef): Promise<RunRef> {
  await store.retryUndos(ref);
  await wake(ref, "retry");
  return ref;
}

function authorOf(by: string | undefined, reason: string | undefined): RetryRequest {
  return { ...defined({ by, reason }) };
}
