import type { OutcomeKind } from "@konverge/core";
import { createTickBatch, runScript, type Handed, type RedisClient } from "@konverge/redis";
import { encodeAttempt } from "./attempt-entry.ts";
import type { Begun, RunningAttempt } from "../scripts/begun.ts";
import type { QueueNames } from "../keys/queue-names.ts";
import { isWord } from "../keys/revision.ts";
import { beginScript } from "../scripts/begin.ts";
import { advanceScript, type Advanced } from "../scripts/advance.ts";
import { endScript, type Ended } from "../scripts/end.ts";
import { renewScript } from "../scripts/renew.ts";
import { wakeScript } from "../scripts/wake.ts";
import type { RestoreFence } from "../restore/restore-watch.ts";
import type { EndPlan } from "./end-plan.ts";

/** Approximate number of attempts kept per key: lists are trimmed occasionally. */
const ATTEMPTS_KEPT = 50;
/** Retention of the attempts of an idle key, and of all data of a key whose object was deleted. */
export const RETENTION_MS: number = 7 * 24 * 3_600_000;
/** Attempts per script call. Larger calls save more, but make Redis and this process wait for each other. */
const BATCH = 8;

export interface EndCall {
  readonly id: string;
  readonly begun: RunningAttempt;
  readonly owner: string;
  readonly outcome: OutcomeKind;
  readonly plan: EndPlan;
  readonly errorCode: string;
  readonly errorMessage: string;
  readonly record: string;
  /** Of the object, for a key that is dead-lettered. */
  readonly versions?: readonly string[];
}

/** A slot whose attempt ended and whose job BullMQ is to finish. */
interface AdvanceCall {
  readonly end: EndCall;
  readonly jobId: string;
  /** The slot's lock of its jobs. */
  readonly token: string;
  /** Owner of the slot's next attempt; undefined to fetch no job. */
  readonly nextOwner: string | undefined;
}

/** Identifies the lease of a running attempt. */
interface HeldAttempt {
  readonly id: string;
  readonly epoch: number;
  readonly owner: string;
}

/** The scripts of attempts, as functions. */
export interface AttemptStore {
  begin(id: string, owner: string): Promise<Begun>;
  end(call: EndCall): Handed<Ended>;
  /** Ends an attempt, finishes its job, and fetches and begins the slot's next job. */
  advance(call: AdvanceCall): Promise<Advanced>;
  /** Returns the priority with which a new event ends the key's backoff, or 0. */
  wake(id: string): Promise<number>;
  /** Returns true for each lease that this worker still holds. */
  renew(leases: readonly HeldAttempt[]): Promise<boolean[]>;
}

export interface AttemptStoreOptions {
  readonly redis: RedisClient;
  readonly names: QueueNames;
  readonly workerId: string;
  readonly leaseMs: number;
  /** Consecutive lost attempts from which a key is dead-lettered. */
  readonly maxLost: number;
  readonly fence: RestoreFence | undefined;
}

export function createAttemptStore(options: AttemptStoreOptions): AttemptStore {
  const { redis, names, workerId, leaseMs, maxLost, fence } = options;
  const { fair, aging, pauses, parked, aborts, dead, progress } = names;
  const beginKeys = { fair, aging, pauses, parked, aborts, dead, progress };
  const beginArgs = () => ({
    leaseMs,
    worker: workerId,
    kept: ATTEMPTS_KEPT,
    retentionMs: RETENTION_MS,
    maxLost,
    work: fence?.kind ?? "",
    oldestMs: fence?.oldestMs() ?? 0,
  });
  const beginBatch = createTickBatch<{ id: string; owner: string }, Begun>(BATCH, (calls) =>
    runScript(redis, beginScript, {
      keys: beginKeys,
      args: beginArgs(),
      each: calls.map(({ id, owner }) => ({ key: names.keyHash(id), owner })),
    }),
  );
  const endBatch = createTickBatch<EndCall, Ended>(BATCH, (calls) =>
    runScript(redis, endScript, {
      keys: {
        timers: names.timers,
        fair,
        aging,
        index: names.index,
        dead: names.dead,
        aborts,
      },
      args: { kept: ATTEMPTS_KEPT, retentionMs: RETENTION_MS },
      each: calls.map((call) => ({
        key: names.keyHash(call.id),
        list: names.attempts(call.id),
        ...endArguments(call, workerId),
      })),
    }),
  );

  const advanceBatch = createTickBatch<AdvanceCall, Advanced>(BATCH, (calls) =>
    runScript(redis, advanceScript, {
      keys: { ...beginKeys, timers: names.timers, index: names.index },
      args: {
        ...beginArgs(),
        bull: names.bullRoot,
        hashes: names.keyRoot,
        lists: names.attempts(""),
        clock: Date.now(),
      },
      each: calls.map(({ end, jobId, token, nextOwner = "" }) => ({
        jobId,
        token,
        member: end.id,
        ...endArguments(end, workerId),
        nextOwner,
      })),
    }),
  );

  return {
    begin: (id, owner) => beginBatch({ id, owner }).answer,
    end: endBatch,
    advance: (call) => advanceBatch(call).answer,
    wake: (id) =>
      runScript(redis, wakeScript, {
        keys: { key: names.keyHash(id), fair },
        args: { member: id },
      }),
    renew: (leases) =>
      runScript(redis, renewScript, {
        args: { leaseMs },
        each: leases.map(({ id, epoch, owner }) => ({ key: names.keyHash(id), epoch, owner })),
      }),
  };
}

function endArguments(call: EndCall, worker: string) {
  const { owner, begun, outcome, plan, errorCode, errorMessage } = call;
  const { epoch, covered, startedAtMs } = begun;
  const { attempts, failures, conflicts } = countersAfter(plan.counting, begun);
  const meta = { epoch, covered, startedAtMs, outcome, worker, errorCode, errorMessage };
  const entry = encodeAttempt(call.id, meta, call.record);
  const isPlain = attempts === 0 && failures === "" && conflicts === "" && plan.job === "complete";
  const ended = { epoch, owner, outcome, covered, entry };
  if (isPlain && plan.timerMs === undefined) return { ...ended, rest: "" };
  const rest = [
    attempts,
    failures,
    conflicts,
    plan.final ? 1 : 0,
    plan.hold,
    Math.round(plan.delayMs),
    plan.timerMs === undefined ? "" : Math.round(plan.timerMs),
    plan.dead ? 1 : 0,
    plan.dead ? ` ${(call.versions ?? []).filter(isWord).join(" ")} ` : "",
  ];
  return { ...ended, rest: rest.join(",") };
}

/** Returns the counters for the script; unchanged failures and conflicts are empty. */
function countersAfter(counting: EndPlan["counting"], begun: RunningAttempt) {
  const same = { attempts: begun.attempt, failures: "", conflicts: "" } as const;
  switch (counting) {
    case "reset":
      return {
        attempts: 0,
        failures: begun.failures === 0 ? "" : 0,
        conflicts: begun.conflicts === 0 ? "" : 0,
      };
    case "failure":
      return { ...same, failures: begun.failures + 1 };
    case "conflict":
      return { ...same, conflicts: begun.conflicts + 1 };
    case "uncount":
      return { ...same, attempts: begun.attempt - 1 };
    case "keep":
      return same;
  }
}
