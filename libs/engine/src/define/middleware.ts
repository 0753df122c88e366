import type { ApiObject } from "@konverge/core";
import type { ReconcileContext, ReconcileResult } from "./reconcile-context.ts";

/** A controller's `reconcile` or `cleanup`. */
export type Handler<T extends ApiObject = ApiObject> = (
  context: ReconcileContext<T>,
) => Promise<ReconcileResult | void>;

/**
 * Runs around every `reconcile` and `cleanup`. What it returns is the handler's result; returning nothing keeps the
 * result of `next`, so that a forgotten `return` loses no `requeueAfter`. Not calling `next` skips the handler; what it
 * throws is classified as if the handler had thrown it.
 *
 * @example
 * const timing: Middleware = async ({ log }, next) => {
 *   const startedMs = performance.now();
 *   await next();
 *   log.info({ ms: performance.now() - startedMs }, "handler timed");
 * };
 */
export type Middleware<T extends ApiObject = ApiObject> = (
  context: ReconcileContext<T>,
  next: () => Promise<ReconcileResult | void>,
) => Promise<ReconcileResult | void>;

/** The handler inside of its middleware, the first one outermost. Without any it is the handler itself. */
export function withMiddleware(use: readonly Middleware[], handler: Handler): Handler {
  return use.reduceRight<Handler>(
    (inner, middleware) => async (context) => {
      let run: InnerRun | undefined;
      const own = await middleware(context, () => {
        // Called twice it is one run all the same: a handler must not write twice in one attempt.
        run ??= startInner(inner, context);
        return run.settled;
      });
      // A middleware that did not wait for `next` ends with it nevertheless; one that caught its error has dealt with it.
      if (run?.pending === true) await run.settled;
      return own ?? run?.result;
    },
    handler,
  );
}

interface InnerRun {
  pending: boolean;
  result: ReconcileResult | void;
  settled: Promise<ReconcileResult | void>;
}

function startInner(inner: Handler, context: ReconcileContext): InnerRun {
  const run: InnerRun = { pending: true, result: undefined, settled: Promise.resolve() };
  run.settled = (async () => {
    try {
      run.result = await inner(context);
      return run.result;
    } finally {
      run.pending = false;
    }
  })();
  return run;
}
