import { isKonvergeError, KonvergeError } from "@konverge/core";
import type { TlsMaterial } from "./tls-material.ts";

export interface Authorization {
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: TlsMaterial;
}

/** First and longest pause after a failure or a rejected credential, and the shortest time between two plugin runs. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
/** A credential that was accepted for this long ends a series of rejections. */
const ACCEPTED_MS = 60_000;

export interface AuthorizationSource {
  /** Reads files and runs plugins as necessary. @throws KonvergeError if there are no credentials */
  authorize(): Promise<Authorization>;
  /** Drops credentials that the source caches itself. */
  renew(): void;
  /** How long the result of `authorize` needs no check, in ms. */
  steadyMs(): number;
}

/**
 * The credentials of a process. Concurrent calls share one run of a plugin. A failure is remembered with a growing pause,
 * and so is a rejected credential: a broken plugin must not start once per call.
 */
export class AuthorizationCache {
  readonly #source: AuthorizationSource;
  readonly #clock: () => number;
  #latest: Promise<Authorization> | undefined;
  #isPending = false;
  #hasFailed = false;
  /** Until then, the latest result is returned without a check. */
  #heldUntilMs = -Infinity;
  /** Start of the latest run of a plugin; undefined without a plugin. */
  #ranAtMs: number | undefined;
  #failures = 0;
  #rejections = 0;
  #isRejected = false;

  constructor(source: AuthorizationSource, clock: () => number = () => performance.now()) {
    this.#source = source;
    this.#clock = clock;
  }

  /** @throws KonvergeError with `retryAfterMs` if there are no credentials */
  async get(): Promise<Authorization> {
    const isHeld = this.#isPending || this.#clock() < this.#heldUntilMs;
    if (this.#latest === undefined || !isHeld) this.#latest = this.#run();
    try {
      return await this.#latest;
    } catch (error) {
      throw this.#withPause(error);
    }
  }

  /** Records the start of a plugin's process. */
  noteRun(): void {
    this.#ranAtMs = this.#clock();
  }

  /** Records that the API server rejected the credentials (401). */
  noteRejected(): void {
    if (this.#ranAtMs === undefined) {
      this.#source.renew();
      this.#heldUntilMs = -Infinity;
      return;
    }
    // All calls in flight are rejected together.
    if (this.#isRejected || this.#isPending || this.#hasFailed) return;
    this.#isRejected = true;
    if (this.#clock() - this.#ranAtMs >= ACCEPTED_MS) this.#rejections = 0;
    this.#heldUntilMs = this.#ranAtMs + pauseMs(this.#rejections++);
  }

  async #run(): Promise<Authorization> {
    this.#isPending = true;
    if (this.#isRejected) this.#source.renew();
    this.#isRejected = false;
    const startedMs = this.#clock();
    try {
      const authorization = await this.#source.authorize();
      this.#hasFailed = false;
      this.#failures = 0;
      const runMs = this.#ranAtMs === undefined ? -Infinity : this.#ranAtMs + FIRST_PAUSE_MS;
      this.#heldUntilMs = Math.max(runMs, startedMs + this.#source.steadyMs());
      return authorization;
    } catch (error) {
      this.#hasFailed = true;
      this.#heldUntilMs = this.#clock() + pauseMs(this.#failures++);
      throw error;
    } finally {
      this.#isPending = false;
    }
  }

  #withPause(error: unknown): unknown {
    if (!isKonvergeError(error)) return error;
    const retryAfterMs = Math.max(0, Math.ceil(this.#heldUntilMs - this.#clock()));
    return new KonvergeError(error.code, error.message, { retryAfterMs });
  }
}

function pauseMs(earlier: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** earlier);
}
