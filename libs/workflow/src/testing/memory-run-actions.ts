import { defined, jsonEquals, type RunLimits } from "@konverge/core";
import type { RunRef } from "../define/run-ref.ts";
import { updateSignalId } from "../store/run-updates.ts";
import { jsonCopy } from "../define/json-value.ts";
import { undoName, undoneStep } from "../define/undo-name.ts";
import {
  MAX_QUEUED,
  type NewRun,
  type RunActions,
  type Started,
  type Reopened,
  type Reopening,
  type Terminated,
} from "../store/run-actions.ts";
import { MAX_BUFFERED, MAX_BUFFERED_BYTES, MOST_SEEN } from "../store/signal-limits.ts";
import {
  areAllWaits,
  awaitedSignals,
  skippedUndo,
  cancellationOf,
  terminationOf,
  type Failure,
  type CancelRequest,
  type RunStatus,
} from "../store/run-record.ts";
import type { PauseAnswer } from "../store/scripts/pause-runs.ts";
import type { ResumeAnswer } from "../store/scripts/resume-runs.ts";
import { followersOf } from "./memory-run-journal.ts";
import {
  endPause,
  forgetPause,
  hasEnded,
  isNewer,
  isPaused,
  lineFrom,
  requestCancel,
  type MemoryRuns,
  type StoredRun,
} from "./memory-runs.ts";
import { freeSlot, viewOf } from "./memory-slots.ts";

export function createMemoryRunActions(runs: MemoryRuns): RunActions {
  return {
    start: async (run) => start(runs, run),

    async signal(ref, signal) {
      const run = runs.find(ref);
      if (run === undefined) return "missing";
      if (run.seen.has(signal.id)) return "duplicate";
      if (hasEnded(run)) return "ended";
      const stored = { ...jsonCopy(signal), atMs: runs.now() };
      const bytes = bytesOfSignals(run) + Buffer.byteLength(JSON.stringify(stored));
      const isFull = bytes > MAX_BUFFERED_BYTES;
      if (isFull || run.signals.length >= MAX_BUFFERED) return "full";
      run.seen.add(signal.id);
      if (run.seen.size > MOST_SEEN) run.seen.delete(run.seen.values().next().value ?? "");
      run.signals.push({ ...stored, seq: ++run.signalSeq });
      const { view, waited } = run;
      const isAwaited = !areAllWaits(waited) || awaitedSignals(waited).includes(signal.name);
      if (view.status === "waiting" && !isAwaited) return "buffered";
      run.wakeSeq += 1;
      return "stored";
    },

    async cancel(ref, request, { resumes = false } = {}) {
      const run = runs.find(ref);
      if (run === undefined) return "missing";
      if (hasEnded(run)) return "ended";
      const answer = requestCancel(run, request, { again: true });
      if (!resumes || !isPaused(run) || answer === "compensating") return answer;
      endPause(run);
      return "requested";
    },

    pause: async (workflow, ids, how) =>
      ids.map((id) => pause(runs.find({ workflow, id }), { ...how, nowMs: runs.now() })),
    resume: async (workflow, ids, how) => ids.map((id) => resume(runs.find({ workflow, id }), how)),

    async skipUndo(ref, step, request) {
      const run = runs.find(ref);
      if (run === undefined) return "missing";
      if (hasEnded(run)) return "ended";
      if (run.failing === undefined) return "active";
      const undo = undoName(step);
      if (run.steps.has(undo)) return "skipped";
      const place = { seq: run.steps.size + 1, atMs: runs.now() };
      run.steps.set(undo, { ...jsonCopy(skippedUndo(request)), ...place });
      run.progress.delete(undo);
      run.wakeSeq += 1;
      return "skipped";
    },

    async raise(ref, limits) {
      const run = runs.find(ref);
      if (run === undefined) return "missing";
      if (hasEnded(run)) return "ended";
      const known = run.view.limits ?? {};
      const isLow = (what: keyof RunLimits) => (limits[what] ?? Infinity) < (known[what] ?? 0);
      if (isLow("steps") || isLow("bytes")) return "low";
      run.view = { ...run.view, limits: { ...known, ...defined(limits) } };
      run.wakeSeq += 1;
      return "raised";
    },

    reopen: async (ref, how) => reopen(runs, ref, how),

    async retryUndos(ref) {
      const { progress } = runs.find(ref) ?? {};
      for (const step of progress?.keys() ?? []) {
        if (undoneStep(step) !== undefined) progress?.delete(step);
      }
    },

    terminate: async (ref, request) =>
      end(runs, ref, { error: terminationOf(request), terminated: request }),

    async endQueued(ref, request) {
      const run = runs.find(ref);
      const before = run?.after && lineFrom(runs, runs.find({ ...ref, id: run.after }))[0];
      const isWaiting = run?.view.status === "queued" && before !== undefined;
      if (!isWaiting && run !== undefined && !hasEnded(run)) return { kind: "active" };
      return end(runs, ref, { error: cancellationOf(request) });
    },
  };
}

/** Sizes of buffered signals, which do not change. */
const sizes = new WeakMap<object, number>();

function bytesOfSignals({ signals }: StoredRun): number {
  let bytes = 0;
  for (const signal of signals) {
    const { seq: _seq, ...text } = signal;
    const size = sizes.get(signal) ?? Buffer.byteLength(JSON.stringify(text));
    sizes.set(signal, size);
    bytes += size;
  }
  return bytes;
}

function pause(
  run: StoredRun | undefined,
  {
    request,
    wanted,
    nowMs,
  }: { readonly request: CancelRequest; readonly wanted?: RunStatus; readonly nowMs: number },
): PauseAnswer {
  if (run === undefined) return "missing";
  const { status } = run.view;
  if (hasEnded(run)) return "ended";
  if (status === "paused" || status === "pausing") {
    const { atMs: _atMs, ...known } = run.view.pause ?? { atMs: 0 };
    return jsonEquals(known, request) ? status : "unchanged";
  }
  if (wanted !== undefined && wanted !== status) return "changed";
  const isActive = status === "running" || (status === "compensating" && run.isExecuted);
  const paused = isActive ? "pausing" : "paused";
  // It waits for a slot again once it is resumed.
  if (run.slot?.startsWith("?") === true) run.slot = "";
  run.pausedFrom = status;
  run.view = { ...run.view, status: paused, pause: { ...request, atMs: nowMs } };
  return paused;
}

function resume(
  run: StoredRun | undefined,
  { wanted }: { readonly wanted?: RunStatus } = {},
): ResumeAnswer {
  if (run === undefined) return "missing";
  if (hasEnded(run)) return "ended";
  if (!isPaused(run)) return "unchanged";
  if (wanted !== undefined && wanted !== run.view.status) return "changed";
  endPause(run);
  return "resumed";
}

function reopen(runs: MemoryRuns, ref: RunRef, { epoch, drop, author }: Reopening): Reopened {
  const run = runs.find(ref);
  const status = run?.view.status;
  if (run === undefined || run.epoch !== epoch) return { kind: "changed" };
  if (status !== "failed" && status !== "cancelled") return { kind: "changed" };
  const { key } = run.view;
  if (key !== undefined) {
    const other = runs.latestOf(ref.workflow, key);
    if (other !== undefined && other !== run && !hasEnded(other)) {
      return { kind: "rejected", holder: other.view.id };
    }
    runs.passKey(run, ref.id);
  }
  for (const [update, answer] of run.answers) {
    // Its caller may send it again.
    if (answer.kind !== "accepted" || !drop.includes(answer.step)) continue;
    if (run.earlierAnswers?.has(update) === true) continue;
    run.answers.delete(update);
    run.seen.delete(updateSignalId(update));
  }
  for (const step of drop) run.steps.delete(step);
  run.progress.clear();
  const {
    result: _result,
    error: _error,
    endedAtMs: _endedAtMs,
    cancel: _cancel,
    terminated: _terminated,
    ...view
  } = run.view;
  run.view = { ...view, status: "queued", retry: author };
  run.slot = "";
  for (const field of ["cancelledAt", "failing", "next", "after"] as const) delete run[field];
  run.epoch += 1;
  run.reopened = (run.reopened ?? 0) + 1;
  run.wakeSeq += 1;
  run.cancels = 0;
  run.logged = 0;
  run.waited = [];
  run.died = false;
  return { kind: "resumed" };
}

function end(
  runs: MemoryRuns,
  ref: RunRef,
  how: { readonly error: Failure; readonly terminated?: CancelRequest },
): Terminated {
  const run = runs.find(ref);
  if (run === undefined) return { kind: "missing" };
  const followers = followersOf(run);
  if (hasEnded(run)) {
    const { terminated } = how;
    const isSame = terminated !== undefined && jsonEquals(run.view.terminated, terminated);
    return { kind: isSame ? "terminated" : "ended", ...followers };
  }
  const { workflow } = ref;
  const [before] =
    run.after === undefined ? [] : lineFrom(runs, runs.find({ workflow, id: run.after }));
  if (before !== undefined) {
    const next = run.next === undefined ? undefined : runs.find({ workflow, id: run.next });
    if (next === undefined || hasEnded(next)) runs.passKey(run, before.view.id);
    else [next.after, before.next] = [before.view.id, next.view.id];
  }
  const {
    blockedReason: _,
    blockedAtMs: _____,
    blockedError: ____,
    waitingUntilMs: __,
    waits: ___,
    ...view
  } = run.view;
  run.view = {
    ...view,
    status: "cancelled",
    ...how,
    endedAtMs: runs.now(),
  };
  forgetPause(run);
  run.epoch += 1;
  run.watched = new Set();
  run.waited = [];
  runs.noteChildEnd(run);
  runs.keepEnd(run);
  const slotTo = freeSlot(runs, run);
  return { kind: "terminated", ...followers, ...(slotTo.length === 0 ? {} : { slotTo }) };
}

function start(
  runs: MemoryRuns,
  { onExisting = "attach", maxQueued = MAX_QUEUED, ...created }: NewRun,
): Started {
  const { workflow, id, version, input, key, labels = {}, parent, by, origin, notify } = created;
  const { retry, scheduledAtMs } = created;
  const known = runs.find(created);
  if (parent !== undefined && (known === undefined || !hasEnded(known))) {
    const { step, round, ...ref } = parent;
    const parentRun = runs.find(ref);
    const isActive = !hasEnded(parentRun) && parentRun?.view.round === round;
    if (isActive && parentRun?.steps.has(step) === false) {
      parentRun.progress.set(step, { attempts: 0, untilMs: 0 });
    }
    if (known !== undefined && known.view.parent === undefined) {
      known.view = { ...known.view, parent: ref };
      known.parentStep = step;
      if (round !== undefined) known.parentRound = round;
    }
  }
  if (known !== undefined) return { kind: "exists", run: viewOf(runs, known) };
  const last = key && origin ? runs.findEnd(workflow, key, id, origin) : undefined;
  if (last !== undefined) return { kind: "attached", id: last.id, end: last.end };
  const latest = key === undefined ? undefined : runs.latestOf(workflow, key);
  const isOvertaken = latest?.origin?.uid === origin?.uid && isNewer(latest?.origin, origin);
  if (latest !== undefined && isOvertaken) return { kind: "attached", id: latest.view.id };
  const holder = hasEnded(latest) ? undefined : latest;
  if (holder !== undefined) {
    if (onExisting === "attach") return { kind: "attached", id: holder.view.id };
    if (onExisting === "reject") return { kind: "rejected", id: holder.view.id };
  }
  const line = lineFrom(runs, holder);
  const isQueued = onExisting === "queue";
  if (holder !== undefined) {
    if (isQueued && line.length > maxQueued) return { kind: "full", id: holder.view.id };
    const replaced = isQueued ? [] : line;
    for (const run of replaced) requestCancel(run, { reason: `superseded by ${id}` });
    holder.next = id;
  }
  const after = holder?.view.id;
  const replaces = isQueued ? undefined : line.at(-1)?.view.id;
  runs.add({
    view: {
      workflow,
      id,
      version,
      status: "queued",
      input: jsonCopy(input),
      createdAtMs: runs.now(),
      ...(parent === undefined ? {} : { parent: { workflow: parent.workflow, id: parent.id } }),
      ...defined({ key, by, retry, scheduledAtMs }),
      ...(Object.keys(labels).length === 0 ? {} : { labels }),
    },
    epoch: 0,
    lease: 0,
    owner: "",
    died: false,
    isExecuted: false,
    cancels: 0,
    cancelCalls: 0,
    resumes: 0,
    wakeSeq: 0,
    handedBack: 0,
    watched: new Set(),
    ...defined({ after }),
    steps: new Map(),
    progress: new Map(),
    silent: new Map(),
    signals: [],
    signalSeq: 0,
    refused: { count: 0, last: [] },
    answers: new Map(),
    logs: [],
    logged: 0,
    waited: [],
    seen: new Set(),
    ...defined({ parentStep: parent?.step, parentRound: parent?.round, origin, notify }),
  });
  return { kind: "created", ...defined({ replaces }) };
}
