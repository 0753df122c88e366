import {
  defined,
  invalidConfig,
  type Duration,
  type ErrorIssue,
  type BackoffPolicy,
  type ResourceType,
} from "@konverge/core";
import type { JsonSerializable } from "./json-value.ts";
import { findWorkflowNameIssue } from "./run-ref.ts";
import type { StepVerbs } from "./step-verbs.ts";
import type { WaitCondition } from "./wait-condition.ts";
import type { WaitForOptions } from "./wait-options.ts";

declare const durable: unique symbol;

/** What the verbs answer. A step's body may not return it, which is how a step in a step is refused by the compiler. */
export type Durable<T> = Promise<T> & { readonly [durable]: true };

/** Checks what comes from outside, and throws. Schemas of zod are such. */
export interface Schema<T> {
  parse(value: unknown): T;
}

/** What a step's body gets: Kubernetes verbs, and what it should know of its try. */
export interface StepContext extends StepVerbs {
  /** Aborted when the step takes too long, the run is cancelled, the worker stops or another one has taken over. */
  readonly signal: AbortSignal;
  /** Which try this is, from 1. A worker that died in the body may have made one that is not counted. */
  readonly attempt: number;
  /** The same in every try of this step and in no other step: for third parties that take such a key. */
  readonly idempotencyKey: string;
}

export interface RetryOptions {
  /** Tries of the body, the first included. Default 5; `Infinity` never gives up. */
  readonly attempts?: number;
  /** Delays between them. Default: 250 ms, doubled up to 30 s, full jitter. Its `steps` do not count. */
  readonly policy?: BackoffPolicy;
}

export interface StepOptions<T> {
  readonly retry?: RetryOptions;
  /**
   * The body does something that cannot be recognised when it is done again, and knows no idempotency key. Its start is
   * recorded first, at the cost of one call of Redis; a body that was started and not recorded counts as a try, whatever became
   * of its worker. `retry.attempts` is 1 then, if not given. Default false.
   */
  readonly unsafe?: boolean;
  /** Longest time of one try. Default 5 min. Too short repeats work that would have succeeded; too long holds a worker. */
  readonly timeout?: Duration;
  /**
   * Takes the step back when the run fails or is cancelled later: called in the reverse order in which steps were recorded,
   * with the same retries. `result` is undefined when the step failed: it may have had its effect all the same.
   */
  readonly undo?: (result: T | undefined, step: StepContext) => Promise<void> | void;
}

export interface SignalOptions<T> {
  /** Signals that it refuses are dropped, with a line in the journal that says why, and the wait goes on. */
  readonly schema?: Schema<T>;
}

/**
 * What a workflow function works with. Names are what results are found by: a name met again gets a number (`pull`,
 * `pull#2`), so order may change between versions, names should not. Between the calls the function must do nothing but
 * compute: it runs again from the start after every wait.
 */
export interface WorkflowContext {
  readonly runId: string;
  /** The version of the code that started the run. */
  readonly version: number;
  /**
   * Runs `body` until it succeeds or its tries are used up, and records how it ended, once. The body runs at least once; what it
   * returned is what every later execution sees.
   * @throws StepFailedError when the tries are used up, or the body threw an error that says that trying again cannot help
   */
  step<T>(
    name: string,
    body: ((step: StepContext) => T | (Promise<T> & { readonly [durable]?: never })) &
      JsonSerializable<T>,
    options?: StepOptions<NoInfer<T>>,
  ): Durable<T>;
  /** Goes on after `duration` at the earliest, by Redis's clock. No worker is held. */
  sleep(name: string, duration: Duration): Durable<void>;
  /** The next signal of this name, in the order of sending, also one that came before; null when the time is over. */
  signal<T = unknown>(
    name: string,
    options: SignalOptions<T> & { readonly timeout: Duration },
  ): Durable<T | null>;
  signal<T = unknown>(name: string, options?: SignalOptions<T>): Durable<T>;
  /**
   * Goes on when Kubernetes objects are as `condition` says: `ready(ref)`, `condition(ref, type)`, `field(ref, predicate)`, `gone(ref)`,
   * `complete(job)`, `all(...)`, `any(...)`. Answers the refs of the objects as they were found. No worker is held; a watch wakes the run.
   * @throws StepFailedError with the failure `wait_timeout`, `object_failed`, `object_deleted`, `object_replaced` or `superseded`
   */
  waitFor<T>(name: string, condition: WaitCondition<T>, options?: WaitForOptions): Durable<T>;
  /** The time of the first call in epoch ms, by Redis's clock; later executions see the same. */
  now(name?: string): Durable<number>;
  /** A UUID that is the same in every execution of this run. */
  id(name: string): string;
  /** What the body of that step finds as its `idempotencyKey`, such as `charge` or `charge#2`, for whoever needs it outside. */
  idempotencyKey(step: string): string;
  /**
   * Runs another workflow and waits for its result. Cancelling this run cancels it, and waits for its end.
   * @throws StepFailedError when it failed or was cancelled
   */
  child<I, R>(name: string, workflow: Workflow<I, R>, input: I): Durable<R>;
}

export type WorkflowFunction<I, R> = (w: WorkflowContext, input: I) => Promise<R>;

export interface WorkflowOptions<I> {
  /** Grows when the code changes so that old runs cannot go on with it. Kept in every run. */
  readonly version: number;
  /** Older versions whose runs this code may finish. Runs of all others wait as `blocked`. Default: none. */
  readonly accepts?: readonly number[];
  /** Checks the input at the start, and gives it its type. */
  readonly input?: Schema<I>;
  /**
   * Kinds whose objects its steps read, write and wait for. `konverge manifests` grants workers get, list, watch, create, patch and
   * delete of each; nothing else looks at it. Default: none.
   */
  readonly kinds?: readonly ResourceType[];
}

/** Any workflow, whatever it takes and returns. */
export interface AnyWorkflow {
  readonly name: string;
  readonly version: number;
  readonly accepts: readonly number[];
  readonly input?: Schema<unknown>;
  readonly kinds: readonly ResourceType[];
  readonly run: (w: WorkflowContext, input: never) => Promise<unknown>;
}

export interface Workflow<I = unknown, R = unknown> extends AnyWorkflow {
  readonly input?: Schema<I>;
  readonly run: WorkflowFunction<I, R>;
}

/**
 * Describes a workflow.
 * @throws KonvergeError `invalid_config` with everything that is wrong
 */
export function defineWorkflow<I, R>(
  name: string,
  options: WorkflowOptions<I>,
  run: WorkflowFunction<I, R> & JsonSerializable<R>,
): Workflow<I, R> {
  const issues = findIssues(name, options, run);
  if (issues.length > 0) throw invalidConfig(issues, `workflow "${name}" is`);
  const { version, accepts = [], kinds = [], input } = options;
  return { name, version, accepts, kinds, ...defined({ input }), run };
}

function findIssues(
  name: string,
  { version, accepts = [], input, kinds = [] }: WorkflowOptions<unknown>,
  run: unknown,
): ErrorIssue[] {
  const issues: ErrorIssue[] = [];
  const check = (holds: boolean, pointer: string, detail: string) => {
    if (!holds) issues.push({ pointer, detail });
  };
  const nameIssue = findWorkflowNameIssue(name);
  check(nameIssue === undefined, "/name", nameIssue ?? "");
  check(isVersion(version), "/version", `version ${version} must be a whole number from 1`);
  check(
    Array.isArray(accepts) && accepts.every((other) => isVersion(other) && other < version),
    "/accepts",
    `accepts must be a list of versions below ${version}`,
  );
  check(
    input === undefined || typeof (input as Partial<Schema<unknown>>).parse === "function",
    "/input",
    "input must be a schema with a function parse, such as one of zod",
  );
  check(
    Array.isArray(kinds) && kinds.every(isResourceType),
    "/kinds",
    "kinds must be a list of kinds, each what defineResource returned or { group, version, kind, resource, scope }",
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

function isVersion(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 1;
}
