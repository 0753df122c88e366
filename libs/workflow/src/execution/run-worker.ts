import { defined, ensureError, sleepMs, type Outcome } from "@konverge/core";
import type { AttemptEnd, AttemptLease, QueueWorker, WorkQueue } from "@konverge/queue";
import type { ChildStarter } from "./await-child.ts";
import type { ClusterAccess } from "../define/cluster-access.ts";
import type { AnyWorkflow } from "../define/define-workflow.ts";
import { runExecution, type ExecutionEnd } from "./run-execution.ts";
import type { RecordedStep, RunObserver } from "../journal/run-observer.ts";
import type { RunRef } from "../define/run-ref.ts";
import type { Claimed, Followers } from "../store/run-journal-store.ts";
import type { RunJournalStore } from "../store/run-journal-store.ts";
import type { RunQueries } from "../store/run-queries.ts";
import type { RunWarning } from "../store/run-record.ts";

/** How soon running bodies are told of a cancellation, and runs whose wake-up was lost are looked for, in ms. */
const LOOK_EVERY_MS = 1_000;
const SWEEP_EVERY_MS = 5_000;
/** How long the last of these is waited for at the end. */
const LAST_ROUND_MS = 1_000;

export interface RunWorkerOptions {
  readonly store: RunJournalStore & Pick<RunQueries, "cancelling" | "overdue">;
  readonly queue: WorkQueue;
  readonly workflow: AnyWorkflow;
  readonly wake: (ref: RunRef, reason: string) => Promise<void>;
  /** Requests the key of a controller because a run has ended. */
  readonly notify: (key: string, run: RunRef) => Promise<void>;
  readonly startChild: ChildStarter;
  readonly workerId: string;
  readonly concurrency: number;
  readonly clusters?: ClusterAccess;
  readonly onError: (error: Error) => void;
  readonly observer?: RunObserver;
  readonly onWarning?: (ref: RunRef, warning: RunWarning) => void;
}

/** Runs the activations of one workflow: each is an attempt of the queue, with its lease, its place and its record. */
export function startRunWorker(options: RunWorkerOptions): QueueWorker {
  const { store, queue, workflow, wake, workerId, observer, onError } = options;
  /** Of the runs that are active here. */
  const cancels = new Map<string, AbortController>();

  const claim = async (ref: RunRef, attempt: AttemptLease): Promise<Claimed> => {
    const lease = attempt.epoch;
    const owner = `${workerId}/${attempt.startedAtMs}/${lease}`;
    const claimed = await store.claim(ref, { lease, owner });
    if (claimed.kind !== "fenced") return claimed;
    // The queue's counter can begin anew (another number of shards, a deleted key): then this is its latest attempt all the same.
    const key = await queue.getKey(attempt.key);
    return key?.epoch === lease ? await store.claim(ref, { lease, owner, anew: true }) : claimed;
  };

  const goOn = async (ref: RunRef, { parent, next, notify }: Followers) => {
    if (parent !== undefined) await wake(parent, "a child has ended");
    if (next !== undefined) await wake(next, "the run before has ended");
    if (notify !== undefined) await options.notify(notify, ref);
  };

  const execute = async (attempt: AttemptLease): Promise<ExecutionEnd | Claimed["kind"]> => {
    const ref = { workflow: workflow.name, id: attempt.key.name };
    const claimed = await claim(ref, attempt);
    if (claimed.kind === "ended") await goOn(ref, claimed);
    if (claimed.kind !== "held") return claimed.kind;
    const cancel = new AbortController();
    cancels.set(ref.id, cancel);
    const beganMs = performance.now();
    try {
      const end = await runExecution({
        store,
        workflow,
        held: claimed,
        stopped: attempt.signal,
        cancelRequested: cancel.signal,
        startChild: options.startChild,
        clock: () => performance.now(),
        random: Math.random,
        onWarning: (warning) => options.onWarning?.(ref, warning),
        ...(observer === undefined
          ? {}
          : { onRecorded: (step: RecordedStep) => observer.recorded(workflow.name, step) }),
        ...defined({ clusters: options.clusters }),
      });
      observer?.executionEnded(workflow.name, {
        result: end.kind === "ended" ? end.status : end.kind,
        durationMs: performance.now() - beganMs,
      });
      // Before the attempt ends: one that dies here is repeated, and finds the run ended.
      if (end.kind === "ended") await goOn(ref, end.followers);
      return end;
    } finally {
      if (cancels.get(ref.id) === cancel) cancels.delete(ref.id);
    }
  };

  const handle = async (attempt: AttemptLease): Promise<AttemptEnd> => {
    try {
      const end = await execute(attempt);
      const how = typeof end === "string" ? end : end.kind;
      return { outcome: outcomeOf(end), record: JSON.stringify({ execution: how }) };
    } catch (thrown) {
      const error = ensureError(thrown);
      onError(error);
      return { outcome: { kind: "retry", error } };
    }
  };

  const look = async () => {
    if (cancels.size === 0) return;
    for (const id of await store.cancelling(workflow.name)) cancels.get(id)?.abort();
  };
  const sweep = async () => {
    const ids = await store.overdue(workflow.name);
    await Promise.all(ids.map((id) => wake({ workflow: workflow.name, id }, "overdue")));
  };
  const rounds = [repeat(look, LOOK_EVERY_MS, onError), repeat(sweep, SWEEP_EVERY_MS, onError)];
  const endRounds = async () => {
    await Promise.all(rounds.map((end) => end()));
  };

  const { concurrency } = options;
  const worker = queue.work({ workerId, concurrency, handle, onError });
  return {
    get active() {
      return worker.active;
    },
    pause: () => worker.pause(),
    resume: () => worker.resume(),
    async stop(stopOptions) {
      await worker.stop(stopOptions);
      await endRounds();
    },
    async kill() {
      await worker.kill();
      await endRounds();
    },
  };
}

/** What the queue does with a run after an activation. A run that has ended is gone for the queue, which then forgets its key. */
function outcomeOf(end: ExecutionEnd | Claimed["kind"]): Outcome {
  if (typeof end === "string") {
    switch (end) {
      case "missing":
      case "ended":
        return { kind: "gone" };
      case "waiting":
        return { kind: "awaitChange" };
      case "held":
      case "fenced":
        return { kind: "cancelled", cause: "leaseLost" };
    }
  }
  switch (end.kind) {
    case "waiting":
      return end.afterMs === undefined
        ? { kind: "awaitChange" }
        : { kind: "requeueAfter", afterMs: end.afterMs };
    case "blocked":
      return { kind: "requeueAfter", afterMs: end.afterMs };
    case "ended":
      return { kind: "gone" };
    case "lost":
      return { kind: "cancelled", cause: "leaseLost" };
    case "error":
      return { kind: "retry", error: end.error };
  }
}

/** Calls `round` again and again, one at a time; the answer ends that and waits for the last one, but not for a Redis that is away. */
function repeat(
  round: () => Promise<void>,
  everyMs: number,
  onError: (error: Error) => void,
): () => Promise<void> {
  let last: Promise<void> = Promise.resolve();
  let isRunning = false;
  const timer = setInterval(() => {
    if (isRunning) return;
    isRunning = true;
    last = round()
      .catch((error: unknown) => onError(ensureError(error)))
      .finally(() => {
        isRunning = false;
      });
  }, everyMs);
  return async () => {
    clearInterval(timer);
    await Promise.race([last, sleepMs(LAST_ROUND_MS)]);
  };
}
