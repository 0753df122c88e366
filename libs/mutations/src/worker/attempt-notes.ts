import {
  defined,
  metadataOf,
  resourceId,
  type JsonObject,
  type Outcome,
  type Trigger,
} from "@konverge/core";
import type { CallRecord } from "@konverge/kube";
import type { AttemptLease } from "@konverge/queue";
import type { AttemptRecord } from "@konverge/records";
import type { Written } from "./apply-batch.ts";
import { MUTATIONS } from "../store/redis-mutation-store.ts";
import type { Target } from "./send-plan.ts";

/** Writes of one attempt that its record lists. */
const MAX_WRITES = 20;

/** What an attempt did, for its record. */
export class AttemptNotes {
  readonly #attempt: AttemptLease;
  readonly #worker: string;
  readonly #writes: AttemptRecord["writes"] = [];
  readonly #calls = { count: 0, durationMs: 0, waitedMs: 0 };
  #laneMs = 0;
  #object: JsonObject | undefined;
  #versionBefore: string | undefined;

  constructor(attempt: AttemptLease, worker: string) {
    this.#attempt = attempt;
    this.#worker = worker;
  }

  noteLane(waitedMs: number): void {
    this.#laneMs += waitedMs;
  }

  noteCall({ durationMs, waitedMs }: CallRecord): void {
    this.#calls.count += 1;
    this.#calls.durationMs += durationMs;
    this.#calls.waitedMs += waitedMs;
  }

  noteWrite({ type, at, subresource }: Target, { read, written }: Written): void {
    const fromVersion = read && versionOf(read);
    this.#versionBefore ??= fromVersion;
    this.#object = written;
    if (this.#writes.length >= MAX_WRITES) return;
    this.#writes.push({
      verb: read === undefined ? "create" : "patch",
      resource: resourceId(type),
      name: at.name,
      ...defined({
        namespace: at.namespace,
        subresource,
        fromVersion,
        toVersion: versionOf(written),
      }),
      conflicts: [],
    });
  }

  /** Returns the record of the ended attempt (JSON). */
  record(outcome: Outcome, backoffMs: number): string {
    const { id, epoch, attempt, triggers, requestedAtMs, startedAtMs } = this.#attempt;
    const finishedAtMs = Date.now();
    const object = this.#object && metadataOf(this.#object);
    const record: AttemptRecord = {
      id: `${id}#${epoch}`,
      key: id,
      epoch,
      controller: MUTATIONS,
      attempt,
      worker: this.#worker,
      triggers: triggers.slice(-10).map(forDisplay),
      requestedAt: new Date(requestedAtMs).toISOString(),
      startedAt: new Date(startedAtMs).toISOString(),
      finishedAt: new Date(finishedAtMs).toISOString(),
      durationMs: Math.max(0, finishedAtMs - startedAtMs),
      waits: {
        queueMs: Math.max(0, startedAtMs - requestedAtMs),
        rateLimitMs: Math.round(this.#calls.waitedMs),
        laneMs: Math.round(this.#laneMs),
        conflictMs: 0,
        backoffMs,
      },
      ...defined({
        uid: textOf(object?.["uid"]),
        versionBefore: this.#versionBefore,
        versionAfter: textOf(object?.["resourceVersion"]),
      }),
      outcome: outcome.kind,
      ...("error" in outcome && outcome.error !== undefined
        ? { error: { code: outcome.kind, message: outcome.error.message.slice(0, 500) } }
        : {}),
      writes: this.#writes,
      conflicts: [],
      calls: { count: this.#calls.count, durationMs: Math.round(this.#calls.durationMs) },
    };
    return JSON.stringify(record);
  }
}

/** Without the versions of watches, which only the attempt needs. */
function forDisplay(trigger: Trigger): Omit<Trigger, "seen"> {
  const { seen: _, ...shown } = trigger;
  return shown;
}

function versionOf(object: JsonObject): string | undefined {
  return textOf(metadataOf(object)["resourceVersion"]);
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
