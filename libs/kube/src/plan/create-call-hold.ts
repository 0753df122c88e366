import { KonvergeError } from "@konverge/core";
import type { CallHold, PlannedCall, SendPlanned } from "../contract/call-plan.ts";
import type { ApiAnswer } from "../contract/http-answer.ts";
import { findApiError } from "../errors/api-exception.ts";
import { isConflict } from "../errors/error-predicates.ts";
import { dry, labelOf, pathOnly, placeOf } from "./planned-call.ts";
import { isHeld, madeOf, type PlannedSend } from "./planned-writes.ts";
import { writeDigest } from "./write-digest.ts";

export interface CallHoldOptions {
  readonly planned: readonly PlannedSend[];
  /** Called before each write; its error rejects the write. */
  readonly admit: () => Promise<void>;
}

/** Holds the calls of an attempt to a plan: each planned write is sent once, and every other write is rejected. */
export interface KubeHold extends CallHold {
  /** The first write that was rejected, or that met a changed object; undefined while all calls follow the plan. */
  readonly deviation: KonvergeError | undefined;
}

export function createCallHold({ planned, admit }: CallHoldOptions): KubeHold {
  return new Hold(planned, admit);
}

class Hold implements KubeHold {
  readonly #open = new Map<string, PlannedSend[]>();
  readonly #rejected = new Set<string>();
  readonly #drawn = new Map<string, string>();
  readonly #admit: () => Promise<void>;
  readonly #sinceMs = Date.now();
  #deviation: KonvergeError | undefined;

  constructor(planned: readonly PlannedSend[], admit: () => Promise<void>) {
    this.#admit = admit;
    for (const each of planned) {
      if (each.failed) this.#rejected.add(each.digest);
      else this.#open.set(each.digest, [...(this.#open.get(each.digest) ?? []), each]);
    }
  }

  get deviation(): KonvergeError | undefined {
    return this.#deviation;
  }

  async send(call: PlannedCall, live: SendPlanned): Promise<ApiAnswer> {
    if (!isHeld(call)) return await live(call);
    // From the first deviation on, the plan does not describe this attempt.
    if (this.#deviation !== undefined) throw this.#deviation;
    const digest = writeDigest(call, { drawn: this.#drawn, sinceMs: this.#sinceMs });
    const entry = this.#open.get(digest)?.shift();
    if (entry !== undefined) return await this.#write(call, live, entry);
    if (this.#rejected.has(digest)) return await this.#tryAgain(call, live);
    throw this.#deviate(call, "the plan does not contain it");
  }

  async #write(call: PlannedCall, live: SendPlanned, entry: PlannedSend): Promise<ApiAnswer> {
    await this.#admit();
    try {
      const answer = await live(call);
      const made = madeOf(answer);
      if (entry.made !== undefined && made !== undefined) {
        this.#drawn.set(made.uid, entry.made.uid);
        if (made.name !== entry.made.name) this.#drawn.set(made.name, entry.made.name);
      }
      return answer;
    } catch (error) {
      if (isConflict(error)) this.#deviate(call, "its object has changed since the plan");
      // The server has not stored it. After any other error, it may have.
      else if (isRejection(error)) this.#open.get(entry.digest)?.unshift(entry);
      throw error;
    }
  }

  /** The plan contains its rejection, so it must be rejected now as well. */
  async #tryAgain(call: PlannedCall, live: SendPlanned): Promise<ApiAnswer> {
    await live(dry(call));
    throw this.#deviate(call, "it was rejected while it was planned, and would now succeed");
  }

  #deviate(call: PlannedCall, reason: string): KonvergeError {
    const place = placeOf(call);
    const about = place === undefined ? pathOnly(call.path) : labelOf(place);
    this.#deviation ??= new KonvergeError(
      "approval_stale",
      `${call.method} ${about} was not made, because ${reason}; the key is planned again`,
    );
    return this.#deviation;
  }
}

function isRejection(error: unknown): boolean {
  const status = findApiError(error)?.status ?? 0;
  return status >= 400 && status < 500;
}
