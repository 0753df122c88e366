import {
  KonvergeError,
  deepFreeze,
  defined,
  resourceId,
  toMs,
  type ApiObject,
  type Outcome,
} from "@konverge/core";
import type { Attempt } from "../access/attempt.ts";
import { noteSecrets } from "../access/attempt-reads.ts";
import { createAttemptKube } from "../access/create-attempt-kube.ts";
import { bindExternal } from "../access/bind-external.ts";
import { bindLimit } from "../access/bind-limit.ts";
import type { OpenCalls } from "../access/open-calls.ts";
import type { AttemptKube } from "../define/attempt-kube.ts";
import { isTerminating, releaseFinalizer } from "../define/finalizer.ts";
import { toOutcome } from "../define/handler-result.ts";
import type { Log } from "../define/log.ts";
import { withMiddleware } from "../define/middleware.ts";
import type { ReconcileContext } from "../define/reconcile-context.ts";
import type { RunState, StartedWorkflow, StartRun, StartRunOptions } from "../define/start-run.ts";
import { classifyError } from "./classify-error.ts";
import { createHandlerLog } from "./handler-log.ts";
import { nextStep, type Step } from "./next-step.ts";
import { readObject } from "./read-object.ts";

/** Reads the object, runs `reconcile` or `cleanup`, and maintains the controller's finalizer. Never throws. */
export async function runHandler(attempt: Attempt): Promise<Outcome> {
  const { controller } = attempt.runtime;
  if (resourceId(attempt.lease.key) !== resourceId(controller.for)) return foreignKind(attempt);
  try {
    const object = await readObject(attempt);
    if (object === undefined) return { kind: "gone" };
    noteSecrets(attempt, controller.for, object);
    attempt.object = attempt.freshReads.note(deepFreeze(object));
    if (isTerminating(object)) attempt.prioritizeDeletion();
    const kube = createAttemptKube(attempt);
    const step = await nextStep(object, attempt, kube);
    if (step === undefined) return { kind: "done" };
    const context = contextOf(attempt, step, kube);
    const run = withMiddleware(attempt.runtime.use, async () => {
      attempt.assertHeld();
      return await step.run(context);
    });
    // After a suspension, this code runs before the timer that aborts the attempt.
    attempt.assertHeld();
    const outcome = toOutcome(await run(context));
    await waitForCalls(attempt.openCalls, attempt.log);
    if (step.handler === "cleanup" && outcome.kind === "done") {
      await releaseFinalizer(kube, step.object, controller.finalizer);
    }
    return outcome;
  } catch (error) {
    // The other calls of a failed Promise.all: their writes must not overlap the next attempt.
    await attempt.openCalls.drain();
    return classifyError(error, { ...controller.for, ...attempt.target });
  }
}

function contextOf(
  attempt: Attempt,
  { handler, object }: Step,
  kube: AttemptKube,
): ReconcileContext {
  const { key, triggers, attempt: number } = attempt.lease;
  return {
    key,
    handler,
    triggers,
    object,
    kube,
    startRun: bindStartRun(attempt, object),
    limit: bindLimit(attempt),
    plan: attempt.plan !== undefined,
    external: bindExternal(attempt),
    log: createHandlerLog(attempt.log, attempt.trace),
    signal: attempt.signal,
    attempt: number,
    requeueAfter: (after) => ({ kind: "requeueAfter", afterMs: toMs(after, "requeueAfter") }),
    awaitChange: () => ({ kind: "awaitChange" }),
  };
}

function bindStartRun(attempt: Attempt, object: ApiObject): StartRun {
  const { runs } = attempt.runtime;
  const { key } = attempt.lease;
  return <I, R>(
    workflow: StartedWorkflow<I, R>,
    input: NoInfer<I>,
    options: StartRunOptions = {},
  ) =>
    attempt.call(async () => {
      const noted = { workflow: workflow.name, ...defined({ id: options.id }) };
      await attempt.hold?.run(noted);
      if (attempt.plan !== undefined) {
        attempt.plan.noteRun(noted);
        const planned: RunState = {
          id: `${workflow.name}/${key.cluster}/planned`,
          created: true,
          status: "queued",
        };
        return planned as RunState<R>;
      }
      const start = async () => {
        if (runs === undefined) {
          throw new KonvergeError(
            "invalid_config",
            "the engine was started without workflows; run the controller with konverge worker",
          );
        }
        return await runs().startFor({ workflow, input, options, key, object });
      };
      const run = await (attempt.tape?.start(noted, start) ?? start());
      attempt.trace.noteRun({ id: run.id, created: run.created });
      // The workflow's function defines the type of its result.
      return run as RunState<R>;
    });
}

/**
 * The request came from another version of the controller, with another kind. Reading an object of our kind by that name would
 * end the request as `gone`. A failure is retried until a worker of the other version takes it.
 */
function foreignKind({ lease: { key }, runtime: { controller } }: Attempt): Outcome {
  const error = new KonvergeError(
    "unknown_controller",
    `controller "${controller.name}" of this worker reconciles ${resourceId(controller.for)}, not ${resourceId(key)}; run a worker of the other version, or cancel the request`,
  );
  return { kind: "retry", error };
}

/** Waits for calls that the handler did not await. Their failure is a failure of the handler. */
async function waitForCalls(openCalls: OpenCalls, log: Log): Promise<void> {
  if (openCalls.count === 0) return;
  log.warn({ calls: openCalls.count }, "handler returned with pending API calls");
  await openCalls.drain();
  const { lateErrors } = openCalls;
  if (lateErrors.length === 1) throw lateErrors[0];
  if (lateErrors.length > 1) {
    throw new AggregateError(lateErrors, "API calls without await failed");
  }
}
