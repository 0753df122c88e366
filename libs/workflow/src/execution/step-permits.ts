import {
  ensureError,
  KonvergeError,
  limitWait,
  type HeldPermit,
  type Limits,
  type LimitUse,
  type PermitRequest,
} from "@konverge/core";
import type { RunJournal } from "../journal/run-journal.ts";
import type { Advance } from "./advance.ts";
import { limitUse } from "./check-step-options.ts";

/** The permits of a step's attempts, one at a time. */
export class StepPermits {
  readonly #journal: RunJournal;
  readonly #limits: Limits;
  readonly #request: LimitUse & Pick<PermitRequest, "waiter">;
  #held: HeldPermit | undefined;

  private constructor(
    journal: RunJournal,
    limits: Limits,
    request: LimitUse & Pick<PermitRequest, "waiter">,
  ) {
    this.#journal = journal;
    this.#limits = limits;
    this.#request = request;
  }

  /** Returns undefined for a step without a limit. @throws KonvergeError `invalid_workflow` for an unknown limit */
  static of(
    journal: RunJournal,
    step: string,
    limit: string | LimitUse | undefined,
  ): StepPermits | undefined {
    if (limit === undefined) return undefined;
    const use = limitUse(limit);
    const { permits } = journal;
    try {
      permits?.limits.check(use);
    } catch (error) {
      throw unknownLimit(step, ensureError(error).message);
    }
    if (permits === undefined) throw unknownLimit(step, `limit "${use.name}" is not configured`);
    return new StepPermits(journal, permits.limits, { ...use, waiter: `${permits.key} ${step}` });
  }

  /** Takes a permit. Returns undefined, or until when the step waits for one without a worker. */
  async take(
    inPlaceMs: number,
    signal: AbortSignal,
  ): Promise<Extract<Advance, { waitUntilMs: unknown }> | "aborted" | undefined> {
    try {
      const taken = await this.#limits.take({ ...this.#request, inPlaceMs, signal });
      if (taken.kind === "held") {
        this.#held = taken.permit;
        return undefined;
      }
      const waitUntilMs = this.#journal.nowMs() + taken.afterMs;
      return { waitUntilMs, message: limitWait(this.#request), limit: this.#request.name };
    } catch (error) {
      if (signal.aborted) return "aborted";
      throw error;
    }
  }

  /** Returns a signal that is also aborted when the slot is lost. */
  bind(signal: AbortSignal): AbortSignal {
    return this.#held === undefined ? signal : AbortSignal.any([signal, this.#held.signal]);
  }

  release(): void {
    this.#held?.release();
    this.#held = undefined;
  }

  /** Leaves the queue of the limit. */
  leave(): void {
    this.#limits.leave(this.#request);
  }
}

function unknownLimit(step: string, detail: string): KonvergeError {
  return new KonvergeError("invalid_workflow", `step "${step}": ${detail}`);
}
