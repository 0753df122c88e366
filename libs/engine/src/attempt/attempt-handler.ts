import { defined } from "@konverge/core";
import { LOOP_CAUSE } from "@konverge/records";
import type { AttemptEnd, AttemptLease } from "@konverge/queue";
import type { AttemptSpan, Tracing } from "@konverge/telemetry";
import { Attempt, type AttemptOptions, type ControllerRuntime } from "../access/attempt.ts";
import type { AttemptReporter } from "./attempt-reporter.ts";
import type { LoopWatch } from "./loop-watch.ts";
import { objectVersions } from "./object-versions.ts";
import { endedRun, runAttempt, type AttemptRun } from "./run-attempt.ts";

export interface AttemptHandlerOptions {
  readonly runtime: ControllerRuntime;
  readonly report: AttemptReporter;
  readonly loop: LoopWatch;
  /** Delay of the start of a key in a reconcile loop, in ms. Default: none. */
  readonly putOffMs?: ((lease: AttemptLease) => number | Promise<number>) | undefined;
  readonly tracing?: Tracing | undefined;
  /** Runs an attempt that users must approve. Default: attempts run without approvals. */
  readonly run?: RunLease | undefined;
}

/** Runs the attempt of a lease. Never throws. */
export type RunLease = (
  lease: AttemptLease,
  options: Pick<AttemptOptions, "log" | "span">,
) => Promise<AttemptRun>;

/** Creates the function that the queue calls with each attempt of a controller. */
export function createAttemptHandler(
  options: AttemptHandlerOptions,
): (lease: AttemptLease) => Promise<AttemptEnd> {
  const { runtime, report, loop, putOffMs, tracing } = options;
  const live: RunLease = (lease, parts) => runAttempt(new Attempt(lease, runtime, parts), loop);
  const { run: runLease = live } = options;
  return async (lease) => {
    const span = tracing?.startAttempt({
      ...lease,
      kind: runtime.controller.for.kind,
    });
    // A plain number is not awaited, since most attempts start at once.
    const delay = putOffMs?.(lease) ?? 0;
    const afterMs = typeof delay === "number" ? delay : await delay;
    const log = report.started(lease, span?.traceId);
    const run =
      afterMs > 0 ? deferredRun(afterMs) : await inSpan(span, () => runLease(lease, { log, span }));
    const { outcome } = run;
    return {
      outcome,
      record: report.finished(lease, run, span),
      ...("error" in outcome ? defined({ versions: objectVersions(run) }) : {}),
    };
  };
}

/** An attempt that only moves the start of a key in a reconcile loop. */
function deferredRun(afterMs: number): AttemptRun {
  const outcome = { kind: "deferred", afterMs, cause: LOOP_CAUSE, endsOnRequest: true } as const;
  return endedRun(outcome);
}

function inSpan<R>(span: AttemptSpan | undefined, run: () => Promise<R>): Promise<R> {
  return span === undefined ? run() : span.run(run);
}
