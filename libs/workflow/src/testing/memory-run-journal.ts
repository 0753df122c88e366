import { defined } from "@konverge/core";
import type { RunRef } from "../define/run-ref.ts";
import { jsonCopy } from "../define/json-value.ts";
import { bytesOf } from "../journal/run-limits.ts";
import { fitsRun } from "../store/code-version.ts";
import { isOfRound, markStateOf } from "../store/mark-state.ts";
import {
  FencedError,
  type Claim,
  type Claimed,
  type Followers,
  type Held,
  type Leave,
  type MarkState,
  type ProgressNote,
  type RunJournalStore,
  type RunOutputText,
  type SpreadState,
  type StepMark,
} from "../store/run-journal-store.ts";
import type { AwaitedSpread, SpreadStep } from "../store/spread-step.ts";
import {
  awaitedSignals,
  isEndStatus,
  withoutPayload,
  type BufferedSignal,
  type RunStatus,
  type RunView,
  type StepProgress,
  type StepRecord,
} from "../store/run-record.ts";
import { MOST_REFUSALS, READ_AT_ONCE } from "../store/signal-limits.ts";
import { MOST_LINES } from "../store/log-limits.ts";
import { updateIdOf } from "../store/run-updates.ts";
import {
  forgetPause,
  hasEnded,
  isPaused,
  lineFrom,
  type MemoryRuns,
  type StoredRun,
} from "./memory-runs.ts";
import { enterSlot, freeSlot, hasSlot } from "./memory-slots.ts";

export function createMemoryRunJournal(runs: MemoryRuns): RunJournalStore {
  /** Random, so that marks in a test's objects never match those of an earlier test on the same server. */
  const installation = crypto.randomUUID();
  return {
    scope: installation,
    installation: async () => installation,
    async announce(workflow, worker, code) {
      if (!runs.announce(workflow, worker, code)) return [];
      if (code.concurrency === undefined) runs.slotCounts.delete(workflow);
      else runs.slotCounts.set(workflow, code.concurrency.runs);
      const blocked = runs.of(workflow).filter(({ view }) => view.status === "blocked");
      return blocked.map(({ view }) => view.id).toReversed();
    },
    retract: async (workflow, worker) => runs.retract(workflow, worker),
    claim: async (ref, how) => claim(runs, ref, how),
    enter: async (held, slot) => enterSlot(runs, held, slot),
    async holds(held) {
      const run = runs.find(held);
      return run?.epoch === held.epoch && !hasEnded(run);
    },
    statesOf: async (marks) => marks.map((mark) => stateOf(runs, mark)),
    async keepInput(held, input) {
      const run = runs.ownActive(held);
      if (run.parsedInput === undefined) run.parsedInput = jsonCopy(input);
      return run.parsedInput;
    },
    commit: async (held, step, record, options) => commit(runs, held, step, record, options),

    note: async (held, step, progress) => note(runs, held, step, progress),

    async readSignals(ref, name) {
      const signals = runs.find(ref)?.signals ?? [];
      return signals.filter((signal) => signal.name === name).slice(0, READ_AT_ONCE);
    },

    async refuse(held, _name, refused) {
      const run = runs.ownActive(held);
      const dropped = refused.filter(({ signal }) =>
        run.signals.some(({ seq }) => seq === signal.seq),
      );
      run.signals = run.signals.filter(
        ({ seq }) => !dropped.some(({ signal }) => signal.seq === seq),
      );
      const texts = dropped.map(({ signal, message }) => ({ ...withoutPayload(signal), message }));
      run.refused = {
        count: run.refused.count + dropped.length,
        last: [...texts.toReversed(), ...run.refused.last].slice(0, MOST_REFUSALS),
      };
    },

    async news(held, awaited) {
      const run = runs.ownActive(held);
      const { wakeSeq, signals, view } = run;
      return {
        wakeSeq,
        ...defined({ cancel: view.cancel }),
        cancels: run.cancels,
        signalCount: signals.length,
        signals: firstOf(signals, awaited.signals),
        ended: awaited.children.filter((child) => hasEnded(runs.find(child))),
        isPausing: view.status === "pausing",
        resumes: run.resumes,
        cancelCalls: run.cancelCalls,
      };
    },

    async refuseUpdate(held, taken, refusal) {
      const run = runs.ownActive(held);
      const left = run.signals.filter(({ seq }) => seq !== taken.seq);
      if (left.length === run.signals.length) return;
      run.signals = left;
      run.answers.set(updateIdOf(taken.id), { kind: "refused", refusal });
    },

    async appendLog(held, lines, logged) {
      const run = runs.ownActive(held);
      run.logs = [...run.logs, ...jsonCopy(lines)].slice(-MOST_LINES);
      run.logged = logged;
    },

    async appendSpreadLog(spread, lines) {
      const run = runs.find(spread);
      if (run?.view.createdAtMs !== spread.createdAtMs || hasEnded(run)) return;
      run.logs = [...run.logs, ...jsonCopy(lines)].slice(-MOST_LINES);
    },

    admitSpread: async (spread, hold) => admitSpread(runs, spread, hold === "always"),
    isSpreadAwaited: async (spread) => waiterOf(runs, spread) !== undefined,

    async watch(held, objects) {
      const run = runs.ownActive(held);
      for (const object of objects) run.watched.add(object);
    },

    releaseEnd: async (workflow, key) => runs.releaseEnd(workflow, key),

    publish: async (held, output) => publish(runs.ownActive(held), output),

    async relabel(held, labels) {
      const run = runs.ownActive(held);
      const { labels: _labels, ...view } = run.view;
      run.view = Object.keys(labels).length === 0 ? view : { ...view, labels };
    },

    leave: async (held, how, output) => leaveRun(runs, held, how, output),
  };
}

function claim(
  runs: MemoryRuns,
  ref: RunRef,
  { lease, owner, anew = false, code }: Claim,
): Claimed {
  const run = runs.find(ref);
  if (run === undefined) return { kind: "missing" };
  if (hasEnded(run)) return { kind: "ended", ...followersOf(run) };
  if (run.view.status === "paused") return { kind: "paused" };
  const isSame = run.owner === owner;
  if (!isSame && !anew && lease <= run.lease) return { kind: "fenced" };
  if (run.view.status === "pausing") {
    run.epoch += 1;
    run.view = { ...run.view, status: "paused" };
    return { kind: "paused" };
  }
  if (run.slot?.startsWith("?") === true) {
    if (run.view.cancel === undefined) return { kind: "waiting" };
    run.slot = "";
  }
  const started = { version: run.view.version, continuedBy: run.continuedBy };
  if (code !== undefined && !fitsRun(code, started) && runs.hasFittingCode(run)) {
    run.handedBack += 1;
    return { kind: "unfit", times: run.handedBack };
  }
  if (run.after !== undefined) {
    if (lineFrom(runs, runs.find({ workflow: ref.workflow, id: run.after })).length > 0) {
      return { kind: "waiting" };
    }
    delete run.after;
  }
  if (!isSame) run.epoch += 1;
  // A worker whose code does not fit blocks the run without running a step.
  const { status: before } = run.view;
  // The same owner repeats a call whose response was lost.
  if (!isSame || before !== "running") {
    run.died = before === "running" || (before === "blocked" && run.died);
  }
  run.lease = lease;
  run.owner = owner;
  run.handedBack = 0;
  run.isExecuted = true;
  const {
    startedAtMs = runs.now(),
    waits: _waits,
    blockedReason,
    blockedAtMs,
    blockedError: _blockedError,
    waitingUntilMs: _waitingUntilMs,
    ...view
  } = run.view;
  const isUndoing = run.failing !== undefined;
  const status = isUndoing ? "compensating" : "running";
  // An undo that is tried again keeps the reason.
  const reason = isUndoing ? defined({ blockedReason, blockedAtMs }) : {};
  run.view = { ...view, ...reason, status, startedAtMs };
  const { epoch, died, wakeSeq, failing, cancelledAt, cancels, waited, parsedInput, continuedBy } =
    run;
  const awaited = awaitedSignals(waited);
  return {
    kind: "held",
    logged: run.logged,
    ...ref,
    epoch,
    died,
    hasSlot: hasSlot(run),
    cancels,
    resumes: run.resumes,
    cancelCalls: run.cancelCalls,
    wakeSeq,
    watched: new Set(run.watched),
    nowMs: runs.now(),
    run: run.view,
    steps: new Map(run.steps),
    progress: new Map(run.progress),
    bytes: [...run.steps].reduce((sum, [step, record]) => sum + bytesOf(step, record), 0),
    signalCount: run.signals.length,
    awaited,
    refusedCount: run.refused.count,
    signals: firstOf(run.signals, awaited),
    waited: waited ?? [],
    ...defined({ failing, cancelledAt, parsedInput, continuedBy, reopened: run.reopened }),
    ...(code === undefined || code.version === run.view.version ? {} : { code: code.version }),
  };
}

/** Returns the first signal of each name. */
function firstOf(signals: readonly BufferedSignal[], names: readonly string[]): BufferedSignal[] {
  return names.flatMap((name) => signals.find((signal) => signal.name === name) ?? []);
}

function stateOf(runs: MemoryRuns, mark: StepMark): MarkState {
  const run = runs.find(mark);
  const isSame = run !== undefined && isOfRound(mark, run.view);
  return markStateOf(isSame ? run.view.status : undefined, run?.steps ?? new Map(), mark);
}

function commit(
  runs: MemoryRuns,
  held: Held,
  step: string,
  record: StepRecord,
  {
    taken,
    update,
    cancels,
    warnings,
    output,
    onStatus,
  }: NonNullable<Parameters<RunJournalStore["commit"]>[3]> = {},
): StepRecord {
  const run = runs.own(held);
  const known = run.steps.get(step);
  if (known !== undefined) return known;
  runs.ownActive(held);
  if (taken !== undefined) {
    if (!run.signals.some(({ seq }) => seq === taken.seq)) {
      throw new FencedError(`signal ${taken.id} was consumed by another execution`);
    }
    run.signals = run.signals.filter(({ seq }) => seq !== taken.seq);
  }
  const nowMs = runs.now();
  const stored = {
    ...jsonCopy(record),
    seq: run.steps.size + 1,
    atMs: nowMs,
  };
  run.steps.set(step, stored);
  run.progress.delete(step);
  if (update !== undefined) {
    run.answers.set(update, { kind: "accepted", step, ...defined({ value: stored.value }) });
  }
  if (cancels === run.cancels) run.cancelledAt = step;
  if (held.code !== undefined) run.continuedBy = held.code;
  if (warnings !== undefined) run.view = { ...run.view, warnings };
  publish(run, output);
  onStatus?.(run.view.status === "pausing");
  return stored;
}

function note(
  runs: MemoryRuns,
  held: Held,
  step: string,
  { attempts, delayMs, keep = false, silentMs, ...more }: ProgressNote,
): StepProgress {
  const run = runs.ownActive(held);
  const known = run.progress.get(step);
  if (keep && known !== undefined) return known;
  const untilMs = runs.now() + Math.ceil(delayMs);
  const progress: StepProgress = { attempts, untilMs, ...jsonCopy(more) };
  run.progress.set(step, progress);
  const { heartbeat } = progress;
  if (heartbeat !== undefined) run.view = { ...run.view, beatAtMs: heartbeat.atMs };
  if (silentMs !== undefined) {
    run.silent.set(step, { atMs: runs.now() + silentMs, lease: run.lease });
  }
  return progress;
}

/** Returns the run that waits for a spread step. */
function waiterOf(runs: MemoryRuns, spread: AwaitedSpread): StoredRun | undefined {
  const run = runs.find(spread);
  if (run === undefined || hasEnded(run)) return undefined;
  const { createdAtMs, round = 1 } = run.view;
  const isSame = createdAtMs === spread.createdAtMs && round === spread.round;
  return isSame && (run.reopened ?? 0) === spread.reopened ? run : undefined;
}

function admitSpread(runs: MemoryRuns, spread: SpreadStep, always: boolean): SpreadState {
  const run = waiterOf(runs, spread);
  if (run === undefined) return "over";
  const { step } = spread;
  const noted = run.progress.get(step);
  const base = { attempts: 0, untilMs: 0 };
  if (!always && !isPaused(run)) {
    if (noted?.heldBack === true) run.progress.set(step, base);
    return "active";
  }
  if (noted !== undefined) run.progress.set(step, { ...base, heldBack: true });
  if (always) run.wakeSeq += 1;
  return "held";
}

function publish(run: StoredRun, output: RunOutputText | undefined): void {
  if (output === undefined) return;
  const published = JSON.parse(output.published) as Record<string, unknown>;
  run.view = { ...run.view, published };
}

function leaveRun(
  runs: MemoryRuns,
  held: Held,
  how: Leave,
  output: RunOutputText | undefined,
): Followers {
  if (how.kind === "continued") {
    // A repeated call.
    if (runs.find(held)?.continuedFrom === held.epoch) return {};
    const run = runs.ownActive(held);
    publish(run, output);
    continueRun(runs, run, { input: how.input, by: held });
    return {};
  }
  const run = runs.own(held);
  if (!hasEnded(run)) {
    publish(run, output);
    leave(run, how, runs.now());
    if (hasEnded(run)) runs.noteChildEnd(run);
  }
  if (!hasEnded(run)) return followersOf(run);
  runs.keepEnd(run);
  return followersOf(run, freeSlot(runs, run));
}

function continueRun(
  runs: MemoryRuns,
  run: StoredRun,
  { input, by }: { readonly input: unknown; readonly by: Held },
): void {
  const {
    warnings: _warnings,
    waits: _waits,
    waitingUntilMs: _waitingUntilMs,
    blockedReason: _blockedReason,
    blockedAtMs: _blockedAtMs,
    blockedError: _blockedError,
    ...view
  } = run.view;
  const { round = 1, firstInput = view.input } = view;
  if (isPaused(run)) run.pausedFrom = "queued";
  run.view = {
    ...view,
    status: isPaused(run) ? "paused" : "queued",
    version: Math.max(by.code ?? view.version, ...runs.liveVersions(view.workflow)),
    input: jsonCopy(input),
    firstInput,
    round: round + 1,
    roundStartedAtMs: runs.now(),
  };
  if (run.cancelledAt !== undefined) {
    const { cancel: _cancel, ...uncancelled } = run.view;
    run.view = uncancelled;
    run.cancels = 0;
    delete run.cancelledAt;
  }
  run.continuedFrom = by.epoch;
  run.earlierAnswers = new Set(run.answers.keys());
  run.epoch += 1;
  run.isExecuted = false;
  run.died = false;
  run.handedBack = 0;
  run.steps.clear();
  run.progress.clear();
  run.watched = new Set();
  run.waited = [];
  run.logged = 0;
  delete run.parsedInput;
  delete run.continuedBy;
}

function leave(
  run: StoredRun,
  how: Exclude<Leave, { readonly kind: "continued" }>,
  endedAtMs: number,
): void {
  const set = (fields: Partial<RunView>) => void (run.view = { ...run.view, ...fields });
  // A paused run gets the status when it is resumed.
  const become = (status: RunStatus, fields: Partial<RunView> = {}) => {
    set(fields);
    if (!isPaused(run)) return set({ status });
    run.pausedFrom = status;
    if (!run.isExecuted) set({ status: "paused" });
  };
  if (how.kind === "waiting" || how.kind === "blocked") run.isExecuted = false;
  const isUndoing = how.kind === "waiting" && run.failing !== undefined;
  if (how.kind === "compensating" || (how.kind === "waiting" && !isUndoing)) delete run.blockedAtMs;
  if (isEndStatus(how.kind)) forgetPause(run);
  if (how.kind !== "compensating") {
    const kept = how.kind === "waiting" ? (how.objects ?? []) : [];
    run.watched = new Set(kept.filter((object) => run.watched.has(object)));
    run.waited = [];
    const {
      blockedReason,
      blockedAtMs,
      blockedError: _error,
      waitingUntilMs: _until,
      ...view
    } = run.view;
    run.view = isUndoing ? { ...view, ...defined({ blockedReason, blockedAtMs }) } : view;
  }
  const { waits: _waits, blockedError: _blockedError, ...unwaiting } = run.view;
  run.view = unwaiting;
  switch (how.kind) {
    case "compensating":
      run.failing = how.failing;
      return become("compensating");
    case "waiting": {
      const { untilMs: waitingUntilMs, waits } = how;
      run.waited = waits;
      if (run.failing !== undefined) {
        return become("compensating", defined({ waitingUntilMs }));
      }
      return become("waiting", defined({ waitingUntilMs, waits }));
    }
    case "blocked":
      return become("blocked", {
        blockedReason: how.reason,
        blockedAtMs: (run.blockedAtMs ??= endedAtMs),
        ...defined({ blockedError: how.error }),
        waitingUntilMs: how.untilMs,
      });
    case "done":
      return set({ status: "done", endedAtMs, result: jsonCopy(how.result) });
    case "failed":
    case "cancelled":
      return set({ status: how.kind, endedAtMs, error: how.error });
  }
}

export function followersOf(run: StoredRun, slotTo: readonly RunRef[] = []): Followers {
  const { workflow, parent } = run.view;
  const next = run.next === undefined ? undefined : { workflow, id: run.next };
  return {
    ...defined({ parent, next, notify: run.notify }),
    ...(slotTo.length === 0 ? {} : { slotTo }),
  };
}
