import {
  compareResourceVersions,
  defined,
  type BackoffPolicy,
  type ObjectKey,
  type Trigger,
} from "@konverge/core";
import { delayOf, type EndPlan } from "../attempt/end-plan.ts";
import { isNewEventByDefault, rankOf } from "../contract/request-class.ts";
import type { AttemptLease, RequestClass, RequestOptions } from "../contract/work-queue.ts";
import { revisionOf } from "../keys/revision.ts";
import { SUSPECT_FROM } from "../scripts/begin-attempt.ts";

/** Triggers kept between two attempts, as in `requester.ts`. */
const TRIGGERS_KEPT = 20;
/** New events that end a backoff at once, and the time after which one more may, as in `news.lua`. */
const NEWS_BURST = 5;
const NEWS_REFILL_MS = 10_000;

/** The waiting requests of a key. */
interface Ask {
  class: RequestClass;
  readonly sinceMs: number;
  news: boolean;
  floor: string | undefined;
  triggers: Trigger[];
}

/** The attempt that holds a key. */
export interface MemoryRun {
  readonly epoch: number;
  readonly attempt: number;
  readonly covered: number;
  readonly worker: string;
  readonly startedAtMs: number;
  readonly requestedAtMs: number;
  readonly revision: string;
  readonly failures: number;
  readonly conflicts: number;
  readonly class: RequestClass;
  readonly triggers: readonly Trigger[];
  readonly floor: string | undefined;
  readonly isResync: boolean;
  readonly pauses: readonly [];
}

export type BeginLimits = {
  readonly maxLost: number;
  readonly failure: BackoffPolicy;
  readonly random: () => number;
};

/** The state of a key, with the rules of `request.lua`, `begin-attempt.lua` and `end-attempt.lua`. */
export class MemoryKey {
  readonly key: ObjectKey;
  readonly id: string;
  number = 0;
  covered = 0;
  finished = 0;
  epoch = 0;
  attempts = 0;
  failures = 0;
  conflicts = 0;
  /** Consecutive attempts that never ended. */
  lost = 0;
  hold: "" | "backoff" | "deferred" = "";
  nextAtMs = 0;
  isDead = false;
  /** The attempt that holds the key, until it ends or is found lost. */
  run: MemoryRun | undefined;
  ask: Ask | undefined;
  /** True for a key without new requests that has to run again. */
  isRetry = false;
  timerAtMs: number | undefined;
  #revision = "";
  #last: MemoryRun | undefined;
  #deadRevision = "";
  #newsTokens = NEWS_BURST;
  #newsAtMs: number | undefined;

  constructor(key: ObjectKey, id: string) {
    this.key = key;
    this.id = id;
  }

  /** True if a worker may begin an attempt now. */
  isDue(nowMs: number): boolean {
    if (this.isDead || this.run !== undefined) return false;
    if (this.ask === undefined && !this.isRetry) return false;
    return this.hold === "" || this.nextAtMs <= nowMs;
  }

  /** True if only a timer is left. */
  get isAtRest(): boolean {
    return this.run === undefined && (this.isDead || (this.ask === undefined && !this.isRetry));
  }

  get rank(): number {
    return rankOf(this.ask?.class ?? "retry");
  }

  request(trigger: Trigger, options: RequestOptions, nowMs: number): number {
    const { class: requestClass = "event" } = options;
    const news = options.news ?? isNewEventByDefault(requestClass);
    this.number += 1;
    this.ask ??= {
      class: requestClass,
      sinceMs: nowMs,
      news: false,
      floor: undefined,
      triggers: [],
    };
    const { ask } = this;
    if (rankOf(requestClass) < rankOf(ask.class)) ask.class = requestClass;
    ask.news ||= news;
    ask.floor = newer(ask.floor, trigger.resourceVersion);
    ask.triggers = [...ask.triggers, trigger].slice(-TRIGGERS_KEPT);
    const revision = revisionOf(trigger, options);
    if (revision !== "") this.#revision = revision;
    const isOther = revision !== "" && revision !== this.#deadRevision;
    if (this.isDead && (requestClass === "interactive" || isOther)) {
      Object.assign(this, { isDead: false, failures: 0, conflicts: 0, lost: 0 });
    }
    if (news && this.#wakes(requestClass, nowMs)) this.hold = "";
    return this.number;
  }

  /** @returns the attempt; undefined if the key backs off after lost attempts, or was dead-lettered for them */
  begin(worker: string, nowMs: number): MemoryRun {
    const { ask } = this;
    if (this.failures > 0 && this.#hasOtherGeneration()) this.failures = 0;
    const isOpen = this.finished < this.covered;
    this.epoch += 1;
    this.attempts += 1;
    this.covered = this.number;
    this.run = {
      epoch: this.epoch,
      attempt: this.attempts,
      covered: this.covered,
      worker,
      startedAtMs: nowMs,
      requestedAtMs: isOpen ? (this.#last?.requestedAtMs ?? nowMs) : (ask?.sinceMs ?? nowMs),
      revision: this.#revision,
      failures: this.failures,
      conflicts: this.conflicts,
      class: ask?.class ?? "retry",
      triggers: ask?.triggers ?? [],
      floor: ask?.floor,
      isResync:
        (ask === undefined || ask.class === "background") &&
        (!isOpen || this.#last?.isResync === true),
      pauses: [],
    };
    this.#last = this.run;
    this.ask = undefined;
    this.isRetry = false;
    this.hold = "";
    return this.run;
  }

  /** Counts the running attempt as lost. Returns the number of consecutive ones. */
  lose({ maxLost, failure, random }: BeginLimits, nowMs: number): number {
    this.run = undefined;
    this.failures += 1;
    this.lost += 1;
    this.isRetry = true;
    if (this.lost >= maxLost) this.#die();
    else if (this.lost >= SUSPECT_FROM) {
      this.#waits("backoff", delayOf(failure, this.failures - 1, random), nowMs);
    }
    return this.lost;
  }

  /** Ends an attempt. False if another epoch has taken over. */
  end(run: MemoryRun, plan: EndPlan, outcome: string, nowMs: number): boolean {
    if (this.run !== run) return false;
    this.run = undefined;
    this.lost = 0;
    this.#count(plan.counting);
    if (plan.final) this.finished = run.covered;
    if (plan.dead) this.#die();
    if (!plan.final && !plan.dead) {
      this.isRetry = true;
      if (plan.hold !== "") this.#waits(plan.hold, plan.delayMs, nowMs);
      // Requests that arrived meanwhile end a backoff.
      if (this.ask?.news === true && this.#wakes(this.ask.class, nowMs)) this.hold = "";
    }
    if (plan.timerMs !== undefined) {
      this.timerAtMs = Math.min(this.timerAtMs ?? Infinity, nowMs + Math.round(plan.timerMs));
    }
    if (outcome === "gone" && this.ask === undefined) this.timerAtMs = undefined;
    return true;
  }

  leaseOf(run: MemoryRun): Omit<AttemptLease, "signal" | "checkExpiry" | "keepLog"> {
    const { worker: _worker, revision: _revision, covered: _covered, floor, ...fields } = run;
    const { key, id } = this;
    return { key, id, ...fields, ...defined({ floor }) };
  }

  #die(): void {
    this.isDead = true;
    this.isRetry = false;
    this.finished = this.covered;
    this.#deadRevision = this.#last?.revision ?? "";
    // A request during the attempt saw another object than the attempt.
    if (this.ask !== undefined && this.#revision !== this.#deadRevision) {
      Object.assign(this, { isDead: false, failures: 0, conflicts: 0 });
    }
  }

  #count(counting: EndPlan["counting"]): void {
    if (counting === "reset") Object.assign(this, { attempts: 0, failures: 0, conflicts: 0 });
    if (counting === "failure") this.failures += 1;
    if (counting === "conflict") this.conflicts += 1;
    if (counting === "uncount") this.attempts -= 1;
  }

  #waits(hold: "backoff" | "deferred", delayMs: number, nowMs: number): void {
    this.hold = hold;
    this.nextAtMs = nowMs + Math.round(delayMs);
  }

  #wakes(requestClass: RequestClass, nowMs: number): boolean {
    if (this.hold === "") return true;
    if (this.hold === "deferred") return false;
    if (requestClass === "interactive") return true;
    const refilled = (nowMs - (this.#newsAtMs ?? nowMs)) / NEWS_REFILL_MS;
    const tokens = Math.min(NEWS_BURST, this.#newsTokens + refilled);
    if (tokens < 1) return false;
    this.#newsTokens = tokens - 1;
    this.#newsAtMs = nowMs;
    return true;
  }

  #hasOtherGeneration(): boolean {
    const generationIn = (revision: string) => revision.replace(/@.*/, "");
    return generationIn(this.#last?.revision ?? "") !== generationIn(this.#revision);
  }
}

function newer(floor: string | undefined, version: string | undefined): string | undefined {
  if (version === undefined || !/^[1-9]\d*$/.test(version)) return floor;
  if (floor === undefined) return version;
  return (compareResourceVersions(version, floor) ?? 0) > 0 ? version : floor;
}
