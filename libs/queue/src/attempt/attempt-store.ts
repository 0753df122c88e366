import type { OutcomeKind, Trigger } from "@konverge/core";
import { runScript, type RedisClient, type ScriptArgument } from "@konverge/redis";
import { encodeAttempt } from "./attempt-entry.ts";
import { classOf } from "../request/request-class.ts";
import type { QueueNames } from "../keys/queue-names.ts";
import { beginNextScript, beginScript } from "../scripts/begin.ts";
import { endScript } from "../scripts/end.ts";
import { renewScript } from "../scripts/renew.ts";
import { wakeScript } from "../scripts/wake.ts";
import { createTickBatch, type Handed } from "../request/tick-batch.ts";
import type { EndPlan } from "./end-plan.ts";
import type { RequestClass } from "../contract/work-queue.ts";

/** Attempts kept per key, and a few more: lists are cut now and then. */
const ATTEMPTS_KEPT = 50;
/** How long the attempts of a key nobody reconciles, and all of a key whose object is gone, are kept. */
export const RETENTION_MS: number = 7 * 24 * 3_600_000;
/** Attempts per script call. One call for all would save most, but then Redis and this process wait for each other in turn. */
const BATCH = 8;

/** Newest jobs that are looked at for one's own; those of other slots and workers lie between. */
const LOOKED_AT = 2 * BATCH;

/** What `begin` says about a job that BullMQ handed out. */
export type Begun =
  | {
      readonly kind: "run";
      readonly epoch: number;
      readonly attempt: number;
      readonly failures: number;
      readonly conflicts: number;
      readonly triggers: readonly Trigger[];
      readonly floor: string;
      readonly requestedAtMs: number;
      readonly startedAtMs: number;
      readonly class: RequestClass;
      /** Number of the last request that it covers. */
      readonly covered: number;
      readonly traceparent: string | undefined;
      /** Attempts in a row, up to this one, that never ended; 0 unless the last of them was found now. */
      readonly lost: number;
    }
  /** Another epoch runs. */
  | { readonly kind: "busy"; readonly waitMs: number }
  /** Attempts of this key die with their workers; it waits before the next. */
  | {
      readonly kind: "backoff";
      readonly failures: number;
      readonly nowMs: number;
      readonly lost: number;
    }
  | { readonly kind: "dead" }
  | { readonly kind: "covered" }
  /** Parked until the pause is ended. */
  | { readonly kind: "paused" };

export type RunningAttempt = Extract<Begun, { kind: "run" }>;

export interface EndCall {
  readonly id: string;
  readonly begun: RunningAttempt;
  readonly owner: string;
  readonly outcome: OutcomeKind;
  readonly plan: EndPlan;
  readonly errorCode: string;
  readonly errorMessage: string;
  readonly record: string;
}

export interface Ended {
  readonly fenced: boolean;
  /** The place of the job that waits from now on, or 0 when nothing does. */
  readonly priority: number;
}

interface BegunJob {
  readonly jobId: string;
  readonly id: string;
  readonly begun: Begun;
}

interface NextCall {
  readonly token: string;
  readonly finishing: string;
  readonly owner: string;
}

/** The scripts of attempts, as functions: the only place that knows the order of their arguments and answers. */
export interface AttemptStore {
  begin(id: string, owner: string): Promise<Begun>;
  /**
   * Begins the job that BullMQ hands out next under `token`, once it has finished `finishing`; undefined when it hands out none.
   * To be sent behind that finish.
   */
  beginNext(token: string, finishing: string, owner: string): Promise<BegunJob | undefined>;
  end(call: EndCall): Handed<Ended>;
  /** The priority with which a key that backs off may start at once because of news, or 0. */
  wake(id: string): Promise<number>;
  /** True for each lease that is still ours. */
  renew(leases: readonly { readonly id: string; readonly epoch: number }[]): Promise<boolean[]>;
}

export interface AttemptStoreOptions {
  readonly redis: RedisClient;
  readonly names: QueueNames;
  readonly workerId: string;
  readonly leaseMs: number;
}

export function createAttemptStore(options: AttemptStoreOptions): AttemptStore {
  const { redis, names, workerId, leaseMs } = options;
  const common = [leaseMs, workerId, ATTEMPTS_KEPT, RETENTION_MS];
  const beginKeys = [names.fair, names.ageing, names.pauses, names.parked, names.aborts];
  const beginBatch = createTickBatch<{ id: string; owner: string }, Begun>(BATCH, async (calls) => {
    const keys = calls.map(({ id }) => names.keyHash(id));
    const owners = calls.map(({ owner }) => owner);
    const answers = await runScript(
      redis,
      beginScript,
      [...beginKeys, ...keys],
      [...common, ...owners],
    );
    return rows(answers).map(decodeBegun);
  });
  const nextBatch = createTickBatch<NextCall, BegunJob | undefined>(BATCH, async (calls) => {
    const args = calls.flatMap(({ owner, token, finishing }) => [owner, token, finishing]);
    const answers = await runScript(
      redis,
      beginNextScript,
      [...beginKeys, `${names.bullRoot}active`],
      [...common, names.bullRoot, names.keyRoot, LOOKED_AT, ...args],
    );
    return rows(answers).map(([jobId, id, ...answer]) =>
      jobId === undefined
        ? undefined
        : { jobId: String(jobId), id: String(id), begun: decodeBegun(answer) },
    );
  });
  const endBatch = createTickBatch<EndCall, Ended>(BATCH, async (calls) => {
    const keys = calls.flatMap(({ id }) => [names.keyHash(id), names.attempts(id)]);
    const args = calls.flatMap((call) => endArguments(call, workerId));
    const answers = await runScript(
      redis,
      endScript,
      [names.timers, names.fair, names.ageing, names.index, names.dead, names.aborts, ...keys],
      [ATTEMPTS_KEPT, RETENTION_MS, ...args],
    );
    return rows(answers).map(([state, priority]) => ({
      fenced: state === "fenced",
      priority: Number(priority),
    }));
  });

  return {
    begin: (id, owner) => beginBatch({ id, owner }).answer,
    beginNext: (token, finishing, owner) => nextBatch({ token, finishing, owner }).answer,
    end: endBatch,
    async wake(id) {
      return Number(await runScript(redis, wakeScript, [names.keyHash(id), names.fair], [id]));
    },
    async renew(leases) {
      const keys = leases.map(({ id }) => names.keyHash(id));
      const epochs = leases.map(({ epoch }) => epoch);
      const answer = await runScript(redis, renewScript, keys, [leaseMs, ...epochs]);
      return (answer as number[]).map((renewed) => renewed === 1);
    },
  };
}

function endArguments(call: EndCall, worker: string): ScriptArgument[] {
  const { owner, begun, outcome, plan, errorCode, errorMessage } = call;
  const { epoch, covered, startedAtMs } = begun;
  const { attempts, failures, conflicts } = countersAfter(plan.counting, begun);
  const meta = { epoch, covered, startedAtMs, outcome, worker, errorCode, errorMessage };
  const entry = encodeAttempt(meta, call.record);
  const isPlain = attempts === 0 && failures === "" && conflicts === "" && plan.job === "complete";
  if (isPlain && plan.timerMs === undefined) return [epoch, owner, outcome, covered, entry, ""];
  const rest = [
    attempts,
    failures,
    conflicts,
    plan.final ? 1 : 0,
    plan.hold,
    Math.round(plan.delayMs),
    plan.timerMs === undefined ? "" : Math.round(plan.timerMs),
    plan.dead ? 1 : 0,
  ];
  return [epoch, owner, outcome, covered, entry, rest.join(",")];
}

/** The counters in the words of the script: failures and conflicts are "" where they stay as they are. */
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

type Row = readonly (string | number)[];

function rows(answer: unknown): readonly Row[] {
  return answer as Row[];
}

function decodeBegun([kind, first, run, last]: Row): Begun {
  switch (kind) {
    case "busy":
      return { kind, waitMs: Number(first) };
    case "backoff":
      return { kind, failures: Number(first), nowMs: Number(run), lost: Number(last) };
    case "dead":
    case "covered":
    case "paused":
      return { kind };
    case "run":
      return decodeRun(String(first), String(run), last);
    case undefined:
    default:
      throw new Error(`script begin answered "${kind}", which this version does not know`);
  }
}

function decodeRun(
  counters: string,
  run: string,
  traceparent: Row[number] | undefined,
): RunningAttempt {
  const [epoch = 0, attempt = 0, failures = 0, conflicts = 0, covered = 0, lost = 0] = counters
    .split(" ")
    .map(Number);
  const [startedAt, , rank, since, floor = "-", , ...triggers] = run.split("\n");
  return {
    kind: "run",
    epoch,
    attempt,
    failures,
    conflicts,
    covered,
    triggers: decodeTriggers(triggers),
    floor: floor === "-" ? "" : floor,
    requestedAtMs: Number(since),
    startedAtMs: Number(startedAt),
    class: classOf(Number(rank)),
    traceparent: traceparent === undefined ? undefined : String(traceparent),
    lost,
  };
}

/** Triggers are kept as lines of JSON, so that a script can add and cut without parsing. */
export function decodeTriggers(lines: readonly string[]): Trigger[] {
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as Trigger);
}
