import {
  compareResourceVersions,
  deepFreeze,
  KonvergeError,
  toMs,
  type ApiObject,
  type BackoffPolicy,
  type ObjectKey,
  type ResourceRef,
  type Outcome,
  type ResourceType,
} from "@konverge/core";
import {
  ignoreNotFound,
  type KubeClient,
  type MutateOptions,
  type NamespacedName,
} from "@konverge/kube";
import type { AttemptLease } from "@konverge/queue";
import type { ObjectLanes } from "@konverge/lanes";
import type { AttemptSpan } from "@konverge/telemetry";
import type { AttemptKube } from "../access/attempt-kube.ts";
import { createAttemptKube } from "../access/create-attempt-kube.ts";
import type { AttemptTrace } from "../access/attempt-trace.ts";
import { classifyError } from "./classify-error.ts";
import type { ConflictRetry, Controller, ReconcileContext } from "../define/define-controller.ts";
import {
  hasFinalizer,
  holdWithFinalizer,
  isTerminating,
  releaseFinalizer,
} from "../define/finalizer.ts";
import { createFreshReads, type FreshReads } from "../access/fresh-reads.ts";
import { createHandlerLog } from "./handler-log.ts";
import { toOutcome } from "../define/handler-result.ts";
import type { Log } from "../define/log.ts";
import type { Handler } from "../define/middleware.ts";
import { typeId, type ObjectCache } from "../access/object-cache.ts";
import type { WriteGroups } from "../access/write-group.ts";
import { createStartRun, type RunStarter } from "../define/start-run.ts";
import { bindCall } from "../access/bind-call.ts";
import { createOpenCalls, type OpenCalls } from "../access/open-calls.ts";

export interface RunHandlerOptions {
  readonly controller: Controller;
  /** The controller's handlers inside of all middleware. */
  readonly handlers: { readonly reconcile: Handler; readonly cleanup: Handler | undefined };
  readonly client: KubeClient;
  readonly cache: ObjectCache;
  readonly lanes: ObjectLanes;
  readonly groups: WriteGroups;
  readonly conflictRetry: ConflictRetry;
  /** Where handlers start runs; opened by the first who does. */
  readonly runs?: (() => RunStarter) | undefined;
  readonly log: Log;
  /** Where traces are on. */
  readonly span?: AttemptSpan;
}

export interface Running {
  readonly trace: AttemptTrace;
  readonly signal: AbortSignal;
  readonly state: { open: boolean; object: ApiObject | undefined };
}

/** Reads the object, lets `reconcile` or `cleanup` run, and keeps the controller's finalizer. Never throws. */
export async function runHandler(
  attempt: AttemptLease,
  options: RunHandlerOptions,
  running: Running,
): Promise<Outcome> {
  const { controller, log } = options;
  const { key } = attempt;
  if (typeId(key) !== typeId(controller.for)) return foreignKind(key, controller);
  const target = targetOf(key);
  const ref: ResourceRef = { ...controller.for, ...target };
  const scoped = bindClient(attempt, options, running);
  const openCalls = createOpenCalls();
  try {
    const object = await readObject(attempt, options, scoped, target);
    if (object === undefined) return { kind: "gone" };
    if (scoped.isSensitive(controller.for)) running.trace.secrets.note(object);
    const freshReads = createFreshReads();
    running.state.object = freshReads.note(deepFreeze(object));
    const kube = bindKube(
      attempt,
      { ...options, client: precedenceOf(object, attempt, scoped) },
      { ...running, openCalls, freshReads },
    );
    const step = await nextStep(object, options, kube);
    if (step === undefined) return { kind: "done" };
    const context: ReconcileContext = {
      key,
      handler: step.handler,
      triggers: attempt.triggers,
      object: step.object,
      kube,
      startRun: createStartRun({
        runs: options.runs,
        key,
        object: step.object,
        call: bindCall({ isOpen: () => running.state.open, openCalls, trace: running.trace }),
        onStarted: running.trace.noteRun,
      }),
      log: createHandlerLog(log, running.trace.secrets),
      signal: running.signal,
      attempt: attempt.attempt,
      requeueAfter: (after) => ({ kind: "requeueAfter", afterMs: toMs(after, "requeueAfter") }),
      awaitChange: () => ({ kind: "awaitChange" }),
    };
    const outcome = toOutcome(await step.run(context));
    await waitForCalls(openCalls, log);
    if (step.handler === "cleanup" && outcome.kind === "done") {
      await releaseFinalizer(kube, step.object, controller.finalizer);
    }
    return outcome;
  } catch (error) {
    // The others of a Promise.all that failed: the next attempt must not meet their writes.
    await openCalls.drain();
    return classifyError(error, ref);
  }
}

/**
 * Requested of another version of the controller, one for another kind. To read an object of our kind by that name would end the
 * request as one for an object that is gone; as a failure it is tried again until a worker of that version takes it.
 */
function foreignKind({ resource, group }: ObjectKey, controller: Controller): Outcome {
  const error = new KonvergeError(
    "unknown_controller",
    `this worker's version of controller "${controller.name}" reconciles ${typeId(controller.for)}, not ${typeId({ resource, group })}: run a worker of the other version, or cancel the request`,
  );
  return { kind: "retry", error };
}

/**
 * The object to reconcile, not older than what its request knew: from this worker's watch when that has come as far, else
 * from the API server; behind a conflict the newest. Who asks as a person wants to be answered by the API server.
 */
async function readObject(
  { floor, conflicts, class: requestClass }: AttemptLease,
  { controller, cache }: RunHandlerOptions,
  scoped: KubeClient,
  target: NamespacedName,
): Promise<ApiObject | undefined> {
  // Whoever won the race is newer than all that a request knew.
  if (floor === undefined || conflicts > 0) {
    return await scoped.get(controller.for, target).catch(ignoreNotFound);
  }
  const known =
    requestClass === "interactive" ? undefined : cache.find(controller.for, target, floor);
  if (known !== undefined) return known;
  return await scoped.get(controller.for, target, { resourceVersion: floor }).catch(ignoreNotFound);
}

/** A deletion's calls go before those of retries and resyncs, also when its own cleanup is tried again. */
function precedenceOf(
  object: ApiObject,
  { class: requestClass }: AttemptLease,
  scoped: KubeClient,
): KubeClient {
  const isBehind = requestClass === "retry" || requestClass === "resync";
  return isBehind && isTerminating(object) ? scoped.scoped({ priority: "event" }) : scoped;
}

interface Step {
  readonly handler: "reconcile" | "cleanup";
  readonly run: Handler;
  readonly object: ApiObject;
}

/** What is to be done for the object, after the finalizer is as it must be. Undefined: nothing. */
async function nextStep(
  object: ApiObject,
  { controller, handlers: { reconcile, cleanup }, log }: RunHandlerOptions,
  kube: AttemptKube,
): Promise<Step | undefined> {
  const { finalizer } = controller;
  const isHeld = hasFinalizer(object, finalizer);
  if (cleanup !== undefined) {
    const held =
      isHeld || isTerminating(object) ? object : await holdWithFinalizer(kube, object, finalizer);
    if (!isTerminating(held)) return { handler: "reconcile", run: reconcile, object: held };
    // Without our finalizer nothing of ours waits to be cleaned up, or it is done.
    if (!hasFinalizer(held, finalizer)) return undefined;
    return { handler: "cleanup", run: cleanup, object: held };
  }
  if (!isHeld) return { handler: "reconcile", run: reconcile, object };
  if (controller.abandonsCleanup) {
    const released = await releaseFinalizer(kube, object, finalizer);
    // The last one of a terminating object: with it the object went.
    if (isTerminating(released) && released.metadata.finalizers === undefined) return undefined;
    return { handler: "reconcile", run: reconcile, object: released };
  }
  if (isTerminating(object)) {
    log.warn(
      { finalizer, fix: 'define cleanup, or set it to "abandon"' },
      "deletion blocked by this controller's finalizer, which has no cleanup",
    );
  }
  return { handler: "reconcile", run: reconcile, object };
}

/** A call that nobody waited for is waited for here, and its failure is the handler's. */
async function waitForCalls(openCalls: OpenCalls, log: Log): Promise<void> {
  if (openCalls.count === 0) return;
  log.warn({ calls: openCalls.count }, "handler returned with pending API calls");
  await openCalls.drain();
  const { lateErrors } = openCalls;
  if (lateErrors.length === 1) throw lateErrors[0];
  if (lateErrors.length > 1) throw new AggregateError(lateErrors, "calls nobody waited for failed");
}

function targetOf({ namespace, name }: ObjectKey): NamespacedName {
  return namespace === undefined ? { name } : { namespace, name };
}

function bindClient(
  attempt: AttemptLease,
  { client, controller, cache, span }: RunHandlerOptions,
  { signal, trace }: Running,
): KubeClient {
  return client.scoped({
    signal,
    priority: attempt.class,
    isRunning: () => trace.calls.count > 0,
    ...(span === undefined ? {} : { onSend: span.startCall }),
    observe: trace.noteCall,
    onConflict: (conflict) => {
      trace.noteConflict(conflict);
      cache.noteConflict(conflict.ref);
    },
    fieldManager: `konverge/${controller.name}`,
  });
}

function bindKube(
  attempt: AttemptLease,
  { client, controller, cache, lanes, groups, conflictRetry }: RunHandlerOptions,
  {
    signal,
    trace,
    state,
    openCalls,
    freshReads,
  }: Running & { readonly openCalls: OpenCalls; readonly freshReads: FreshReads },
): AttemptKube {
  return createAttemptKube({
    client,
    cache,
    lanes,
    groups,
    signal,
    trace,
    namespace: attempt.key.namespace,
    retry: mutateRetry(conflictRetry),
    isOpen: () => state.open,
    openCalls,
    freshReads,
    floorOf: (type) => floorOf(attempt, controller, type),
  });
}

/** The newest version of a kind that the requests for this attempt knew. Of a retry nothing is known: time has passed. */
function floorOf(
  { triggers, floor }: AttemptLease,
  controller: Controller,
  type: ResourceType,
): string | undefined {
  const id = typeId(type);
  let newest = id === typeId(controller.for) ? floor : undefined;
  for (const { seen } of triggers) {
    const version = seen?.[id];
    if (version === undefined) continue;
    if (newest === undefined || (compareResourceVersions(version, newest) ?? 0) > 0) {
      newest = version;
    }
  }
  return newest;
}

/** Never gives up, but yields to the attempt's timeout. */
const INLINE: BackoffPolicy = {
  baseMs: 10,
  factor: 2,
  capMs: 1_000,
  steps: Infinity,
  jitter: { kind: "full" },
};

function mutateRetry(mode: ConflictRetry): MutateOptions["retry"] {
  switch (mode) {
    case "job":
      return "none";
    case "inline":
      return INLINE;
    case "both":
      return undefined;
  }
}
