import { defined, KonvergeError, startLongTimer } from "@konverge/core";
import { assertJson } from "../define/json-value.ts";
import { FencedError } from "../store/run-journal-store.ts";
import type { Heartbeat } from "../store/run-record.ts";

const MAX_PROGRESS_BYTES = 16 * 1_024;
/** Stored heartbeats within the timeout, so that one may come late. */
const STORED_PER_TIMEOUT = 3;
/** Longest time between two stored heartbeats, in ms: progress is for users, too. */
const MAX_EVERY_MS = 5_000;
/** How much longer than the timeout the store waits, in ms: a live worker ends its attempt itself. */
const GRACE_MS = 1_000;
/** Part of the store's wait that is left when the attempt ends, so that it has ended before another one begins. */
const MARGIN_MS = 300;

export interface HeartbeatsOptions {
  readonly step: string;
  readonly attempt: number;
  /** Default: missing heartbeats end no attempt. */
  readonly timeoutMs?: number;
  /** The last heartbeat of an earlier attempt. */
  readonly last?: Heartbeat;
  /** Longest time between a heartbeat and its storage, in ms. Default: a third of the timeout, at most 5 s. */
  readonly everyMs?: number;
  readonly nowMs: () => number;
  /** Stores a heartbeat. Without another one within `silentMs`, the worker counts as lost. */
  readonly store: (beat: Heartbeat | undefined, silentMs: number | undefined) => Promise<unknown>;
  /** Throws if the value contains text of a Secret. */
  readonly check: (progress: unknown) => void;
  /** Called with each heartbeat after it was sent to the store. For tests. */
  readonly onBeat?: (progress: unknown) => void;
}

/**
 * The heartbeats of one attempt. They are stored at most once per `everyMs`, under the fence of the run. The attempt ends when
 * its body is silent for the timeout, and when none could be stored for so long that another worker may take the run.
 */
export class Heartbeats {
  readonly #options: HeartbeatsOptions;
  readonly #everyMs: number;
  #last: Heartbeat | undefined;
  #onEnd: (reason: Error) => void = () => undefined;
  #beatAtMs = performance.now();
  #storedAtMs = -Infinity;
  #isStoring = false;
  #isEnded = false;
  #cancelTimeout = (): void => undefined;
  #nextStore: NodeJS.Timeout | undefined;

  constructor(options: HeartbeatsOptions) {
    const { timeoutMs = Infinity, everyMs, last } = options;
    this.#options = options;
    this.#last = last;
    this.#everyMs = everyMs ?? Math.min(timeoutMs / STORED_PER_TIMEOUT, MAX_EVERY_MS);
  }

  /** The last heartbeat of this attempt or an earlier one. */
  get last(): Heartbeat | undefined {
    return this.#last;
  }

  /** The progress of the last heartbeat of an earlier attempt. */
  get earlier(): unknown {
    return this.#options.last?.progress;
  }

  /** Sets what ends the attempt. */
  onEnd(end: (reason: Error) => void): void {
    this.#onEnd = end;
    if (this.#options.timeoutMs === undefined) return;
    this.#beatAtMs = performance.now();
    this.#watch();
  }

  /** Notes the begin of the attempt, so that the loss of its worker is found before the first heartbeat. */
  async begin(): Promise<void> {
    if (this.#options.timeoutMs === undefined) return;
    await this.#send();
  }

  /** @throws KonvergeError `invalid_result` for a value that cannot be stored */
  beat(value: unknown): void {
    const { step, attempt, nowMs, check, onBeat } = this.#options;
    if (this.#isEnded) return;
    if (value !== undefined) {
      assertProgress(step, value);
      check(value);
    }
    const progress = value === undefined ? this.#last?.progress : value;
    this.#last = { attempt, atMs: nowMs(), ...defined({ progress }) };
    this.#beatAtMs = performance.now();
    this.#store();
    onBeat?.(value);
  }

  /** Ignores further heartbeats of the body, which may ignore the end of its attempt. */
  end(): void {
    this.#isEnded = true;
    this.#cancelTimeout();
    clearTimeout(this.#nextStore);
  }

  /** Stores now if the last time was long enough ago, else later. */
  #store(): void {
    if (this.#isEnded || this.#nextStore !== undefined) return;
    const leftMs = this.#storedAtMs + this.#everyMs - performance.now();
    if (this.#everyMs === 0 || (leftMs <= 0 && !this.#isStoring)) {
      void this.#send().catch((error: unknown) => this.#onRefused(error));
      return;
    }
    this.#nextStore = setTimeout(
      () => {
        this.#nextStore = undefined;
        this.#store();
      },
      Math.max(1, leftMs),
    );
  }

  async #send(): Promise<void> {
    const { timeoutMs, store } = this.#options;
    const askedAtMs = performance.now();
    this.#isStoring = true;
    try {
      await store(this.#last, timeoutMs === undefined ? undefined : timeoutMs + GRACE_MS);
      this.#storedAtMs = askedAtMs;
    } finally {
      this.#isStoring = false;
    }
  }

  /** Only a fence ends the attempt. After another error, the next heartbeat is stored, or the timeout ends it. */
  #onRefused(error: unknown): void {
    if (error instanceof FencedError) this.#onEnd(error);
  }

  #watch(): void {
    if (this.#isEnded) return;
    const { step, timeoutMs = Infinity } = this.#options;
    const silentAtMs = this.#beatAtMs + timeoutMs;
    const lostAtMs = this.#storedAtMs + timeoutMs + GRACE_MS - MARGIN_MS;
    const leftMs = Math.min(silentAtMs, lostAtMs) - performance.now();
    if (leftMs > 0) {
      this.#cancelTimeout = startLongTimer(leftMs, () => this.#watch());
      return;
    }
    const why =
      silentAtMs <= lostAtMs
        ? `step "${step}" sent no heartbeat for ${timeoutMs} ms`
        : `no heartbeat of step "${step}" could be stored for ${timeoutMs} ms`;
    const fix = "call heartbeat more often, or increase its heartbeatTimeout";
    this.#onEnd(new KonvergeError("heartbeat_timeout", `${why}; ${fix}`));
  }
}

function assertProgress(step: string, value: unknown): void {
  assertJson(value, `the heartbeat of "${step}"`);
  const bytes = Buffer.byteLength(JSON.stringify(value));
  if (bytes <= MAX_PROGRESS_BYTES) return;
  throw new KonvergeError(
    "invalid_result",
    `the heartbeat of "${step}" has ${bytes} bytes, the limit is ${MAX_PROGRESS_BYTES}; pass a position instead of the data`,
  );
}
