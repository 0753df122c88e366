import { ensureError } from "@konverge/core";
import type { ExecutionScope, ParkedVerb } from "../journal/execution-scope.ts";
import type { RunJournal } from "../journal/run-journal.ts";
import type { RunNews } from "../store/run-journal-store.ts";
import { awaitedSignals, type RunWait } from "../store/run-record.ts";
import type { WakeUps } from "./wake-rounds.ts";

/** Longest time of a timer, in ms; longer ones fire immediately. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export interface LiveWaitsOptions {
  readonly scope: ExecutionScope;
  readonly journal: RunJournal;
  /** Default: the execution notices events only at its begin. */
  readonly wakeUps?: WakeUps;
  /** Calls once after `ms`, unless the returned function is called. Default: a timer. */
  readonly after?: (ms: number, call: () => void) => () => void;
}

/**
 * Continues waiting branches while a body of another branch is at work: at the end of a sleep or timeout, and after a wake-up
 * of the run. Returns a function that ends this. When nothing is at work, the execution ends instead, and a later one continues.
 */
export function startLiveWaits(options: LiveWaitsOptions): () => void {
  const waits = new LiveWaits(options);
  return () => waits.end();
}

class LiveWaits {
  readonly #scope: ExecutionScope;
  readonly #journal: RunJournal;
  readonly #options: LiveWaitsOptions;
  #isFollowing = false;
  #isRefreshing = false;
  #isStale = false;
  #dueAtMs = Infinity;
  #cancelTimer = (): void => undefined;

  constructor(options: LiveWaitsOptions) {
    const { scope, journal } = options;
    this.#options = options;
    this.#scope = scope;
    this.#journal = journal;
    scope.onParked(({ wait }) => this.#setTimer(wait?.untilMs ?? Infinity));
    scope.onActivity(() => this.#follow());
    journal.pauses.onResumed(() => scope.resume(() => true));
  }

  end(): void {
    this.#cancelTimer();
    this.#options.wakeUps?.stop();
    this.#journal.pauses.onResumed(() => undefined);
    this.#journal.cancelRequested.removeEventListener("abort", this.#onCancel);
  }

  /** A waiting verb throws the cancellation. */
  readonly #onCancel = (): void => this.#scope.resume(() => true);

  #follow(): void {
    const { wakeUps } = this.#options;
    const { isPartlyWaiting } = this.#scope;
    if (isPartlyWaiting === this.#isFollowing) return;
    this.#isFollowing = isPartlyWaiting;
    this.#journal.cancelRequested.addEventListener("abort", this.#onCancel, { once: true });
    if (isPartlyWaiting) wakeUps?.start(() => this.#refresh());
    else wakeUps?.stop();
  }

  #refresh(): void {
    this.#isStale = true;
    if (this.#isRefreshing || this.#scope.closed) return;
    this.#isRefreshing = true;
    void this.#scope
      .visit(async () => {
        while (this.#isStale && !this.#scope.closed) {
          this.#isStale = false;
          const { cancelCalls } = this.#journal;
          const waits = this.#scope.waits();
          const news = await this.#journal.refresh(waits);
          // The news does not include a wait that began during the read.
          this.#isStale ||= this.#scope
            .waits()
            .some((wait) => isRead(wait) && !waits.includes(wait));
          const isCancelled = news.cancelCalls > cancelCalls;
          this.#scope.resume(
            (verb) => mayContinue(verb, news) || (isCancelled && verb.wait?.child !== undefined),
          );
        }
      })
      .catch((error: unknown) =>
        this.#scope.interrupt(this.#journal.interruptOf(ensureError(error))),
      )
      .finally(() => {
        this.#isRefreshing = false;
      });
  }

  #setTimer(atMs: number): void {
    if (atMs >= this.#dueAtMs || atMs === Infinity) return;
    this.#cancelTimer();
    this.#dueAtMs = atMs;
    const { after = timer } = this.#options;
    const ms = Math.min(Math.max(0, atMs - this.#journal.nowMs()), MAX_TIMER_MS);
    this.#cancelTimer = after(ms, () => this.#onTimer());
  }

  #onTimer(): void {
    this.#dueAtMs = Infinity;
    if (!this.#scope.mayWork || this.#scope.closed) return;
    const nowMs = this.#journal.nowMs();
    this.#scope.resume(({ wait }) => (wait?.untilMs ?? Infinity) <= nowMs);
    for (const { untilMs = Infinity } of this.#scope.waits()) this.#setTimer(untilMs);
  }
}

/** Returns true if the news may end the wait. Sleeps and delays between attempts end by time only. */
function mayContinue({ wait }: ParkedVerb, { signals, ended }: RunNews): boolean {
  if (wait?.limit !== undefined) return true;
  if (wait === undefined || wait.kind === "sleep") return false;
  if (wait.kind === "step" && wait.spread === undefined) return false;
  const [awaited] = awaitedSignals([wait]);
  if (awaited !== undefined) return signals.some(({ name }) => name === awaited);
  const { spread, child = spread } = wait;
  if (child === undefined) return true;
  return ended.some(({ workflow, id }) => workflow === child.workflow && id === child.id);
}

/** Returns true if a refresh reads the end of this wait only when it is asked for it. */
function isRead(wait: RunWait): boolean {
  return awaitedSignals([wait]).length > 0 || (wait.child ?? wait.spread) !== undefined;
}

function timer(ms: number, call: () => void): () => void {
  const timeout = setTimeout(call, Math.ceil(ms));
  return () => clearTimeout(timeout);
}
