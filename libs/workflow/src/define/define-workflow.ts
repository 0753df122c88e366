import {
  defined,
  invalidConfig,
  toMs,
  type Duration,
  type ErrorIssue,
  type BackoffPolicy,
  type LimitUse,
  type ResourceType,
  type RunLimits,
} from "@konverge/core";
import { findLimitIssues } from "./check-run-limits.ts";
import { findConcurrencyIssues, type RunConcurrency } from "./run-concurrency.ts";
import type { JsonSerializable } from "./json-value.ts";
import type { Log } from "./log.ts";
import type { OnExisting } from "./on-existing.ts";
import { findWorkflowNameIssue, type RunRef } from "./run-ref.ts";
import { findRetentionIssues, type DefinedRetention, type RunRetention } from "./run-retention.ts";
import type { StepVerbs } from "./step-verbs.ts";
import type { WaitCondition } from "./wait-condition.ts";
import type { WaitForOptions } from "./wait-options.ts";

const MAX_STALL_TIMEOUT_MS = 3_600_000;

declare const durable: unique symbol;

/** The return type of verbs. A step's body may not return it, so the compiler rejects a step inside a step. */
export type Durable<T> = Promise<T> & { readonly [durable]: true };

/** Validates external data, and throws if it is invalid, as a zod schema does. */
export interface Schema<T> {
  parse(value: unknown): T;
}

/** The context of a step's body: Kubernetes verbs and the current attempt. */
export interface StepContext extends StepVerbs {
  /** Aborted on a timeout, a cancellation of the run, a stop of the worker, or a takeover by another worker. */
  readonly signal: AbortSignal;
  /** Logs with the step; the last lines are kept with the run, and go to the log of the worker. */
  readonly log: Log;
  /** Number of the attempt, from 1. An attempt whose worker died may not be counted. */
  readonly attempt: number;
  /** The same in every attempt of this step, and in no other step; for external APIs that accept such a key. */
  readonly idempotencyKey: string;
  /**
   * Reports that the body is running, with its progress: plain JSON, at most 16 KiB, which users see and `lastHeartbeat` returns.
   * Without a value, the last progress is kept. Call it as often as you like: at most one heartbeat is stored per third of
   * `heartbeatTimeout`, or per 5 s if that is shorter.
   * @throws KonvergeError `invalid_result` for a value that cannot be recorded
   */
  readonly heartbeat: (progress?: unknown) => void;
  /** The progress of the last stored heartbeat of an earlier attempt; undefined if there is none. */
  readonly lastHeartbeat: unknown;
}

/** The attempts of a step. */
export interface RetryOptions {
  /** Attempts of the body, including the first. Default 5; `Infinity` retries without a limit. */
  readonly attempts?: number;
  /** The same delay before each further attempt, instead of `policy`. */
  readonly delay?: Duration;
  /** Delays between attempts. Default: 250 ms, doubled up to 30 s, full jitter. Its `steps` are ignored. */
  readonly policy?: BackoffPolicy;
}

/** The options of `w.step`. */
export interface StepOptions<T> {
  /** How often the body is attempted, and the delays in between. */
  readonly retry?: RetryOptions;
  /**
   * Set it if a repeated body would have its effect twice and uses no idempotency key. Each start is then recorded first, with
   * one Redis call, and counts as an attempt even if the worker dies. The default of `retry.attempts` becomes 1. Default false.
   */
  readonly unsafe?: boolean;
  /**
   * A limit in `limits` of the configuration, which all workers share. Each attempt of the body, and of its undo, takes one permit
   * and holds a slot until it ends. A run that waits for a permit occupies no worker, and the wait does not count as an attempt.
   * Default: none.
   */
  readonly limit?: string | LimitUse;
  /**
   * Runs the body on any worker of the workflow, so that steps that are called together run in several processes. Each try takes
   * a slot of that worker's `concurrency` and replays the function up to the call. Default false: the body runs in the process
   * that executes the run. Use it for long bodies, or for many at once; a step with a short body takes longer.
   */
  readonly spread?: boolean;
  /** Timeout of one attempt. Default 5 min. Too short repeats work that would have succeeded; too long occupies a worker. */
  readonly timeout?: Duration;
  /**
   * Longest time between two heartbeats of the body, at least 1 s. An attempt that is silent for longer fails with
   * `heartbeat_timeout` and is retried. If its worker was lost, another worker continues the run after this time and a second.
   * Default: none; another worker then continues when the lease has expired, within about 20 s. Too short aborts bodies that
   * are only slow.
   */
  readonly heartbeatTimeout?: Duration;
  /**
   * Undoes the step if the run later fails or is cancelled. Undos run in the reverse order of the records, with the same
   * retries. `result` is undefined if the step failed, since it may still have had an effect. A step that provably had none is
   * not undone: it awaited only its Kubernetes verbs, and the API server rejected each of their writes. An undo deletes only
   * what its step created.
   */
  readonly undo?: (result: T | undefined, step: StepContext) => Promise<void> | void;
}

/** The options of `w.map`. */
export interface MapOptions {
  /** Most calls at once. Default 10. Too high starts many bodies in one process; too low takes longer. */
  readonly concurrency?: number;
  /** Failed steps, children and `TerminalError`s after which it still continues. Default 0. */
  readonly toleratedFailures?: number;
}

/** The options of `w.race`. */
export interface RaceOptions {
  /** Name of its record. Default: the names of the branches. */
  readonly name?: string;
}

/** The branch of a race that was first, and what it returned. */
export type RaceOutcome<T> = {
  readonly [K in keyof T]: { readonly branch: K; readonly value: T[K] };
}[keyof T];

/** The options of `w.signal`. */
export interface SignalOptions<T> {
  /** Signals that do not fit are dropped and shown with the run, and the wait continues. */
  readonly schema?: Schema<T>;
}

/** The sender of an update. */
export interface UpdateSender {
  readonly id: string;
  /** The name of a token, or without a token the value in the request. */
  readonly by?: string;
}

/** What happens to a child when its parent ends without waiting for it. */
export type ParentClosePolicy = "cancel" | "terminate" | "abandon";

/** The options of `w.child`. */
export interface ChildOptions<R> {
  /**
   * Undoes a child that is done if this run later fails or is cancelled, in order with the undos of steps and with their default
   * attempts. A child that failed or was cancelled has undone its own steps, so its `undo` does not run.
   */
  readonly undo?: (result: R | undefined, step: StepContext) => Promise<void> | void;
  /**
   * What happens to the child when this run is cancelled, fails, or ends without waiting for it. `cancel`, the default, cancels
   * it; if this run failed or was cancelled, the undos begin after its end. `terminate` ends it at once, without its undo. `abandon`
   * leaves it running.
   */
  readonly onParentClose?: ParentClosePolicy;
}

/** The options of `w.start`, with the same effect as for a start by a client. */
export interface StartRunOptions {
  /**
   * Id of the run. A start with the id of an existing run returns that run if the input is the same, and fails with
   * `input_mismatch` otherwise. Default: derived from the id of this run and the name.
   */
  readonly id?: string;
  /** At most one run of the workflow with this key is active at a time, such as `rollout:team-a/web`. */
  readonly key?: string;
  /**
   * The action if another run holds the key: return that run (`attach`, the default); fail with `run_exists` (`reject`); cancel
   * that run and start after it has ended (`supersede`); or start after that run and all runs that wait for it (`queue`).
   */
  readonly onExisting?: OnExisting;
}

/**
 * The context of a workflow function. Results are found by name: a repeated name gets a number (`pull`, `pull#2`). The order
 * may change between versions, names should not. Between the calls the function must only compute, because it runs again from
 * the start after every wait.
 */
export interface WorkflowContext<I = unknown> {
  /** Id of the run. */
  readonly runId: string;
  /** The round of the run, from 1; each `continueWith` begins the next. */
  readonly round: number;
  /**
   * The version of the code that started this round of the run, in every execution. A branch on it changes the steps of new runs only, while
   * `accepts` lets the new code finish the old ones.
   */
  readonly version: number;
  /** The time of the schedule for which the run was started, epoch ms; undefined for other runs. */
  readonly scheduledAtMs: number | undefined;
  /**
   * Runs `body` until it succeeds or its attempts are used up, and records the result once. The body runs at least once; every
   * later execution receives the recorded result.
   * @throws StepFailedError when the attempts are used up, or the body threw an error that no retry can fix
   */
  step<T>(
    name: string,
    body: ((step: StepContext) => T | (Promise<T> & { readonly [durable]?: never })) &
      JsonSerializable<T>,
    options?: StepOptions<NoInfer<T>>,
  ): Durable<T>;
  /** Waits at least `duration` by Redis's clock. Occupies no worker. */
  sleep(name: string, duration: Duration): Durable<void>;
  /** Waits until a time, as `sleep` does; a past time ends at once. The time of the first call counts. A number is epoch ms. */
  sleepUntil(name: string, time: Date | number): Durable<void>;
  /** Returns the next signal of this name in the order of sending, including earlier ones; null after the timeout. */
  signal<T = unknown>(
    name: string,
    options: SignalOptions<T> & { readonly timeout: Duration },
  ): Durable<T | null>;
  signal<T = unknown>(name: string, options?: SignalOptions<T>): Durable<T>;
  /**
   * Waits for an update, which is a signal with an answer. `answer` computes the answer from the payload, once and
   * synchronously; the caller and the function both receive it. A payload that does not fit the schema and an `answer` that throws
   * a `TerminalError` refuse the update: the caller gets the reason, nothing is recorded, and the wait continues. Returns null
   * after the timeout.
   */
  handle<T, R>(
    name: string,
    schema: Schema<T>,
    answer: ((payload: T, sender: UpdateSender) => R) & JsonSerializable<R>,
    options: { readonly timeout: Duration },
  ): Durable<R | null>;
  handle<T, R>(
    name: string,
    schema: Schema<T>,
    answer: ((payload: T, sender: UpdateSender) => R) & JsonSerializable<R>,
  ): Durable<R>;
  /**
   * Waits until Kubernetes objects meet `condition`: `ready(ref)`, `condition(ref, type)`, `field(ref, predicate)`, `gone(ref)`,
   * `complete(job)`, `all(...)`, `any(...)`. Returns the refs of the objects. Occupies no worker; a watch wakes the run.
   * @throws StepFailedError with the failure `wait_timeout`, `object_failed`, `object_deleted`, `object_replaced` or `superseded`
   */
  waitFor<T>(name: string, condition: WaitCondition<T>, options?: WaitForOptions): Durable<T>;
  /** Returns the time of the first call in epoch ms, by Redis's clock; the same in later executions. */
  now(name?: string): Durable<number>;
  /** Returns a UUID that is the same in every execution of this run. */
  id(name: string): string;
  /**
   * Publishes a value that users with access to the run can read at any time, without a worker: the last value of each name, at
   * most 16 KiB in total. It is stored with the next record, or after a second. Call it between steps, not in a body.
   */
  set<T>(name: string, value: T & JsonSerializable<T>): void;
  /** Logs a line once, not again in each replay. The last lines are kept with the run, and go to the log of the worker. */
  readonly log: Log;
  /**
   * Sets a label of the run, by which runs can be listed; undefined removes it. At most 10 labels. Names have letters, digits and
   * `-_./`, values also `:@+`. Call it between steps, not in a body.
   */
  label(name: string, value: string | undefined): void;
  /** Returns the `idempotencyKey` of a step, such as `charge` or `charge#2`, for use outside its body. */
  idempotencyKey(step: string): string;
  /**
   * Ends this round of the run and starts the function again with another input, without the records so far, in the newest version
   * that a live worker has. The call never returns. For endless and polling workflows, whose records would reach the limits.
   *
   * The run keeps its id, key, labels, author, parent, published values and unconsumed signals. As at a return, running bodies end
   * first, other waits are dropped, children are cancelled unless they are abandoned, and no step is undone any more. A
   * cancellation that was requested before is thrown instead.
   *
   * @param input of the next round, at most 64 KiB
   */
  continueWith(input: I): Durable<never>;
  /** The run that started this one with `w.child`. */
  readonly parent: RunRef | undefined;
  /**
   * Runs another workflow and waits for its result. A cancellation of this run cancels the child and waits for its end.
   * @throws StepFailedError if the child failed or was cancelled
   */
  child<I, R>(
    name: string,
    workflow: Workflow<I, R>,
    input: NoInfer<I>,
    options?: ChildOptions<NoInfer<R>>,
  ): Durable<R>;
  /**
   * Starts another run that is independent of this one, and does not wait for it. Returns its reference for `w.signalRun`; with a
   * `key`, this may be the run that holds the key.
   * @throws StepFailedError with `run_exists`, `queue_full` or `input_mismatch`
   */
  start<I>(
    name: string,
    workflow: Workflow<I>,
    input: NoInfer<I>,
    options?: StartRunOptions,
  ): Durable<RunRef>;
  /**
   * Sends a signal to another run, once.
   * @throws StepFailedError with `run_ended`, `not_found` or `queue_full`
   */
  signalRun(name: string, run: RunRef, signal: string, payload?: unknown): Durable<void>;
  /**
   * Runs branches at the same time until one returns or fails, and records that branch with its value, which must be plain JSON.
   * The losing branches are ended: their bodies' `signal` is aborted, their waits and children are cancelled, and their calls never
   * return. Steps that had begun in them are undone if the run fails later.
   * @throws the failure of the branch that was first, if it failed
   */
  race<T extends Readonly<Record<string, unknown>>>(
    branches: {
      readonly [K in keyof T]: ((w: WorkflowContext) => Promise<T[K]>) & JsonSerializable<T[K]>;
    },
    options?: RaceOptions,
  ): Durable<RaceOutcome<T>>;
  /**
   * Calls `call` for each item, with a limit, and returns the outcomes in the order of the items. Put the item into the names of its
   * steps.
   * @throws the first failure that is not tolerated, when all calls that had begun have ended; no further one begins
   */
  map<T, R>(
    items: readonly T[],
    call: (item: T, index: number) => Promise<R>,
    options?: MapOptions,
  ): Durable<PromiseSettledResult<R>[]>;
}

export type WorkflowFunction<I, R> = (w: WorkflowContext<NoInfer<I>>, input: I) => Promise<R>;

/** The options of {@link defineWorkflow}. */
export interface WorkflowOptions<I> {
  /** Increase it when old runs cannot continue with the new code. Stored in every run. */
  readonly version: number;
  /** Older versions whose runs this code may finish. Runs of all other versions are `blocked`. Default: none. */
  readonly accepts?: readonly number[];
  /** Validates the input at the start, and defines its type. */
  readonly input?: Schema<I>;
  /**
   * Longest time in which the function awaits anything other than a call on `w`; the run is then `blocked`. Default 10 s. Too short
   * blocks runs on a busy worker; during the time, a stalled run occupies a worker.
   */
  readonly stallTimeout?: Duration;
  /** The limits at which a run is blocked. A higher limit continues it. Each execution reads all records. */
  readonly limits?: RunLimits;
  /** How long ended runs are kept, and their memory limit. Default: the settings `runRetention` and `runLimitMiB`. */
  readonly retention?: RunRetention;
  /**
   * Maximum number of concurrent runs in all workers. Further runs wait in the order of their starts and occupy no worker.
   * Default: not limited.
   */
  readonly concurrency?: RunConcurrency<I>;
  /**
   * Blocks a run if the code no longer calls recorded steps in the recorded order, before it does anything new. Default false: the
   * run continues with a warning.
   */
  readonly strict?: boolean;
  /**
   * Kinds that its steps read, write and wait for. `konverge manifests` grants workers get, list, watch, create, patch and delete
   * on them. Default: none.
   */
  readonly kinds?: readonly ResourceType[];
}

/** A workflow with any input and result. */
export interface AnyWorkflow {
  readonly name: string;
  readonly version: number;
  readonly accepts: readonly number[];
  readonly input?: Schema<unknown>;
  readonly kinds: readonly ResourceType[];
  readonly strict: boolean;
  readonly stallTimeoutMs?: number;
  readonly limits?: RunLimits;
  readonly retention?: DefinedRetention;
  readonly concurrency?: RunConcurrency;
  readonly run: (w: WorkflowContext, input: never) => Promise<unknown>;
}

export interface Workflow<I = unknown, R = unknown> extends AnyWorkflow {
  readonly input?: Schema<I>;
  readonly run: WorkflowFunction<I, R>;
}

/**
 * Defines a workflow.
 * @throws KonvergeError `invalid_config` with all issues
 */
export function defineWorkflow<I, R>(
  name: string,
  options: WorkflowOptions<I>,
  run: WorkflowFunction<I, R> & JsonSerializable<R>,
): Workflow<I, R> {
  const issues = findIssues(name, options, run);
  if (issues.length > 0) throw invalidConfig(issues, `workflow "${name}" is`);
  const {
    version,
    accepts = [],
    kinds = [],
    strict = false,
    input,
    stallTimeout,
    limits,
    retention: { time, bytes } = {},
    concurrency,
  } = options;
  const stallTimeoutMs = stallTimeout === undefined ? undefined : toMs(stallTimeout, "");
  const timeMs = time === undefined ? undefined : toMs(time, "");
  const retention = defined({ timeMs, bytes });
  return {
    name,
    version,
    accepts,
    kinds,
    strict,
    ...defined({ input, stallTimeoutMs, limits, concurrency }),
    ...(options.retention === undefined ? {} : { retention }),
    run,
  };
}

function findIssues(
  name: string,
  {
    version,
    accepts = [],
    input,
    kinds = [],
    strict,
    stallTimeout,
    limits,
    retention,
    concurrency,
  }: Omit<WorkflowOptions<unknown>, "concurrency"> & { readonly concurrency?: unknown },
  run: unknown,
): ErrorIssue[] {
  const issues: ErrorIssue[] = [];
  const check = (holds: boolean, pointer: string, detail: string) => {
    if (!holds) issues.push({ pointer, detail });
  };
  const nameIssue = findWorkflowNameIssue(name);
  check(nameIssue === undefined, "/name", nameIssue ?? "");
  check(isVersion(version), "/version", `version must be an integer >= 1 (got ${version})`);
  check(
    Array.isArray(accepts) && accepts.every((other) => isVersion(other) && other < version),
    "/accepts",
    `accepts must be a list of versions below ${version}`,
  );
  check(
    input === undefined || typeof (input as Partial<Schema<unknown>>).parse === "function",
    "/input",
    "input must be a schema with a function parse, such as a zod schema",
  );
  check(
    Array.isArray(kinds) && kinds.every(isResourceType),
    "/kinds",
    "kinds must be a list of results of defineResource or { group, version, kind, resource, scope }",
  );
  check(
    strict === undefined || typeof strict === "boolean",
    "/strict",
    `strict must be true or false (got ${String(strict)})`,
  );
  issues.push(...findLimitIssues(limits ?? {}), ...findRetentionIssues(retention ?? {}));
  if (concurrency !== undefined) issues.push(...findConcurrencyIssues(concurrency));
  check(
    stallTimeout === undefined || isStallTimeout(stallTimeout),
    "/stallTimeout",
    `stallTimeout must be a duration from 1ms to 1h (got ${stallTimeout})`,
  );
  check(
    typeof run === "function",
    "/run",
    "the third argument must be an async function (w, input)",
  );
  return issues;
}

function isResourceType(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { group, version, kind, resource } = value as Partial<ResourceType>;
  return [group, version, kind, resource].every((part) => typeof part === "string");
}

function isStallTimeout(duration: Duration): boolean {
  try {
    const ms = toMs(duration, "stallTimeout");
    return ms >= 1 && ms <= MAX_STALL_TIMEOUT_MS;
  } catch {
    return false;
  }
}

function isVersion(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 1;
}
