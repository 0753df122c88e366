import { defined } from "@konverge/core";
import { workflowOf, type RunRef } from "../define/run-ref.ts";
import { CODE_TTL_MS, fitsRun, type CodeVersion } from "../store/code-version.ts";
import { FencedError, type Held } from "../store/run-journal-store.ts";
import { textOf } from "../store/run-fields.ts";
import { MAX_KEPT_TEXT, type EndedRun, type RunOrigin } from "../store/run-actions.ts";
import {
  isEndStatus,
  type BufferedSignal,
  type LogLine,
  type CancelRequest,
  type Failing,
  type RefusedSignals,
  type RunStatus,
  type RunView,
  type RunWait,
  type StepProgress,
  type StepRecord,
} from "../store/run-record.ts";
import type { UpdateAnswer } from "../store/run-updates.ts";

export interface StoredRun {
  view: RunView;
  epoch: number;
  lease: number;
  owner: string;
  died: boolean;
  wakeSeq: number;
  watched: Set<string>;
  /** Id of the run for whose end this one waits, until it has begun. */
  after?: string;
  next?: string;
  failing?: Failing;
  /** Since when it is blocked; a recheck that finds it blocked again keeps the time. */
  blockedAtMs?: number;
  cancelledAt?: string;
  /** The status that a paused run gets back. */
  pausedFrom?: RunStatus;
  /** True from the claim until the execution has left the run, or for ever if it is lost. */
  isExecuted: boolean;
  /** As in Redis: `?<group>` while it waits for a slot, `+<group>` while it holds one, `^` in that of an ancestor. */
  slot?: string;
  cancels: number;
  cancelCalls: number;
  resumes: number;
  /** How often a retry has continued the ended run. */
  reopened?: number;
  /** The newest version of the code that has recorded a step, if it is not that of the run. */
  continuedBy?: number;
  /** The epoch of the execution that has begun the round. */
  continuedFrom?: number;
  /** Claims in a row by code that does not fit. */
  handedBack: number;
  readonly steps: Map<string, StepRecord>;
  readonly progress: Map<string, StepProgress>;
  /** By step: the time from which its body counts as silent, and the lease of its execution. */
  readonly silent: Map<string, { readonly atMs: number; readonly lease: number }>;
  signals: BufferedSignal[];
  signalSeq: number;
  refused: RefusedSignals;
  logs: readonly LogLine[];
  logged: number;
  /** Of updates, by id. */
  readonly answers: Map<string, UpdateAnswer>;
  /** Ids of the updates that were answered in earlier rounds. */
  earlierAnswers?: ReadonlySet<string>;
  waited: readonly RunWait[] | undefined;
  readonly seen: Set<string>;
  parsedInput?: unknown;
  /** The step of the parent. */
  parentStep?: string;
  parentRound?: number;
  readonly origin?: RunOrigin;
  /** Key to request when the run has ended. */
  readonly notify?: string;
}

interface AnnouncedCode {
  readonly code: CodeVersion;
  readonly atMs: number;
}

/** The end of the last run of a key that was for an object. */
interface LastRun {
  readonly id: string;
  readonly origin: RunOrigin;
  readonly end: EndedRun;
  /** When it expires, once its object is missing. */
  expiresAtMs?: number;
}

export interface MemoryRunsOptions {
  /** Epoch ms. */
  readonly now: () => number;
  /** How long a run is kept after its end, in ms. Default: forever. */
  readonly retentionMs?: number;
}

/** Ids of retries of a run: its id, a tilde and a number. */
const RETRY = /^~\d+$/;

/** The runs of a test, shared by the ports of the store. */
export class MemoryRuns {
  /** Epoch ms. */
  readonly now: () => number;
  /** Number of slots per group, by workflow; missing for no limit. */
  readonly slotCounts: Map<string, number> = new Map();
  readonly #runs = new Map<string, StoredRun>();
  readonly #holders = new Map<string, string>();
  /** The code of each worker with the time of its last announcement, by workflow. */
  readonly #codes = new Map<string, Map<string, AnnouncedCode>>();
  readonly #lastRuns = new Map<string, LastRun>();
  readonly #retentionMs: number;

  constructor({ now, retentionMs = Infinity }: MemoryRunsOptions) {
    this.now = now;
    this.#retentionMs = retentionMs;
  }

  find({ workflow, id }: RunRef): StoredRun | undefined {
    const run = this.#runs.get(`${workflow}/${id}`);
    return run !== undefined && this.#hasExpired(run) ? undefined : run;
  }

  add(run: StoredRun): void {
    const { workflow, id, key } = run.view;
    this.#runs.set(`${workflow}/${id}`, run);
    if (key !== undefined) this.#holders.set(`${workflow}/${key}`, id);
  }

  /** Returns the latest run with a key. */
  latestOf(workflow: string, key: string): StoredRun | undefined {
    const id = this.#holders.get(`${workflow}/${key}`);
    const run = id === undefined ? undefined : this.find({ workflow, id });
    // A later run with that id may have no key.
    return run?.view.key === key ? run : undefined;
  }

  /** Leaves the key of a run to another run. */
  passKey({ view: { workflow, key } }: StoredRun, id: string): void {
    this.#holders.set(`${workflow}/${key}`, id);
  }

  /** Notes the code of a worker. Returns true if the worker was not live. */
  announce(workflow: string, worker: string, code: CodeVersion): boolean {
    const codes = this.#codes.get(workflow) ?? new Map<string, AnnouncedCode>();
    this.#codes.set(workflow, codes);
    const known = codes.get(worker);
    codes.set(worker, { code, atMs: this.now() });
    return known === undefined || !this.#isLive(known);
  }

  retract(workflow: string, worker: string): void {
    this.#codes.get(workflow)?.delete(worker);
  }

  /** Returns true if the code of a live worker fits the run. */
  hasFittingCode({ view: { workflow, version }, continuedBy }: StoredRun): boolean {
    return this.#liveCodes(workflow).some((code) => fitsRun(code, { version, continuedBy }));
  }

  /** Returns the versions that live workers have. */
  liveVersions(workflow: string): readonly number[] {
    return this.#liveCodes(workflow).map(({ version }) => version);
  }

  #liveCodes(workflow: string): readonly CodeVersion[] {
    const codes = [...(this.#codes.get(workflowOf(workflow))?.values() ?? [])];
    return codes.filter((announced) => this.#isLive(announced)).map(({ code }) => code);
  }

  /** Notes the end of a child for its parent, which then asks for it. */
  noteChildEnd({ view, parentStep, parentRound }: StoredRun): void {
    const parent = view.parent && this.find(view.parent);
    if (parent === undefined || parentStep === undefined) return;
    if (hasEnded(parent) || parent.view.round !== parentRound) return;
    if (!parent.progress.has(parentStep)) return;
    parent.wakeSeq += 1;
    parent.progress.set(parentStep, { attempts: 0, untilMs: 0, childEnded: true });
  }

  /** Keeps the end of a run for an object. */
  keepEnd({ view, origin }: StoredRun): void {
    const { workflow, id, key, status, result, error } = view;
    if (origin?.object === undefined || key === undefined || !isEndStatus(status)) return;
    const name = `${workflow}/${key}`;
    const known = this.#lastRuns.get(name)?.origin;
    if (known?.uid === origin.uid && isNewer(known, origin)) return;
    const kept = defined(status === "done" ? { result } : { error });
    const isSmall = Buffer.byteLength(textOf(result ?? error)) <= MAX_KEPT_TEXT;
    this.#lastRuns.set(name, { id, origin, end: { status, ...(isSmall ? kept : {}) } });
  }

  /** Returns the kept end of a run, of a retry of it, or of a run for a newer generation of the object. */
  findEnd(workflow: string, key: string, id: string, origin: RunOrigin): LastRun | undefined {
    const last = this.#lastRuns.get(`${workflow}/${key}`);
    if (last === undefined || last.origin.uid !== origin.uid) return undefined;
    if (last.expiresAtMs !== undefined && last.expiresAtMs <= this.now()) return undefined;
    const isRetry = last.id.startsWith(id) && RETRY.test(last.id.slice(id.length));
    if (last.id !== id && !isRetry && !isNewer(last.origin, origin)) return undefined;
    delete last.expiresAtMs;
    return last;
  }

  releaseEnd(workflow: string, key: string): void {
    const last = this.#lastRuns.get(`${workflow}/${key}`);
    if (last !== undefined) last.expiresAtMs = this.now() + this.#retentionMs;
  }

  /** @throws FencedError */
  own(held: Held): StoredRun {
    const run = this.find(held);
    if (run === undefined || run.epoch !== held.epoch)
      throw new FencedError(`another execution holds ${held.id}`);
    return run;
  }

  /** As `own`, for a run that has not ended. @throws FencedError */
  ownActive(held: Held): StoredRun {
    const run = this.own(held);
    if (hasEnded(run)) throw new FencedError(`${held.id} has ended`);
    return run;
  }

  /** Returns the runs of a workflow, newest first. */
  of(workflow: string): readonly StoredRun[] {
    const runs = [...this.#runs.values()].filter((run) => !this.#hasExpired(run));
    return runs.filter(({ view }) => view.workflow === workflow).toReversed();
  }

  /** Returns the runs that wait for objects, with the keys of these. */
  waits(): { readonly run: RunRef; readonly objects: ReadonlySet<string> }[] {
    return [...this.#runs.values()]
      .filter(({ watched }) => watched.size > 0)
      .map(({ view: { workflow, id }, watched }) => ({ run: { workflow, id }, objects: watched }));
  }

  #isLive({ atMs }: AnnouncedCode): boolean {
    return atMs > this.now() - CODE_TTL_MS;
  }

  #hasExpired({ view: { endedAtMs } }: StoredRun): boolean {
    return endedAtMs !== undefined && endedAtMs + this.#retentionMs <= this.now();
  }
}

/** Returns true if both objects have a generation, and that of `one` is newer. */
export function isNewer(one: RunOrigin | undefined, other: RunOrigin | undefined): boolean {
  return (one?.generation ?? Number.NaN) > (other?.generation ?? Number.NaN);
}

export function hasEnded(run: StoredRun | undefined): boolean {
  return run === undefined || isEndStatus(run.view.status);
}

/**
 * Returns a run and those before it that have not ended; the active one is at the end. A run that ended before its turn still
 * names the one before it.
 */
export function lineFrom(runs: MemoryRuns, last: StoredRun | undefined): readonly StoredRun[] {
  const seen = new Set<StoredRun>();
  for (let run = last; run !== undefined && !seen.has(run);) {
    seen.add(run);
    const { after, view } = run;
    run = after === undefined ? undefined : runs.find({ workflow: view.workflow, id: after });
  }
  return [...seen].filter((run) => !hasEnded(run));
}

/** Stores a cancellation. A later one counts only if it may be given `again` and the one before was thrown. */
export function requestCancel(
  run: StoredRun,
  cancel: CancelRequest,
  { again = false }: { readonly again?: boolean } = {},
): "requested" | "pending" | "compensating" {
  if (run.failing !== undefined) return "compensating";
  if (again) run.cancelCalls += 1;
  const mayRepeat = again && run.cancelledAt !== undefined;
  if (run.view.cancel !== undefined && !mayRepeat) {
    if (again) run.wakeSeq += 1;
    return "pending";
  }
  run.view = { ...run.view, cancel };
  delete run.cancelledAt;
  run.cancels += 1;
  run.wakeSeq += 1;
  return "requested";
}

/** True for a run that is paused, or about to be. */
export function isPaused({ view }: StoredRun): boolean {
  return view.pause !== undefined;
}

/** Ends the pause of a run, which gets its status back. */
export function endPause(run: StoredRun): void {
  run.view = { ...run.view, status: run.pausedFrom ?? run.view.status };
  forgetPause(run);
  run.resumes += 1;
  run.wakeSeq += 1;
}

export function forgetPause(run: StoredRun): void {
  const { pause: _pause, ...view } = run.view;
  run.view = view;
  delete run.pausedFrom;
}
