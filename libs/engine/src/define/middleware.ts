import type { ApiObject } from "@konverge/core";
import type { ReconcileContext, ReconcileResult } from "./reconcile-context.ts";

/** A controller's `reconcile` or `cleanup`. */
export type Handler<T extends ApiObject = ApiObject> = (
  context: ReconcileContext<T>,
) => Promise<ReconcileResult | void>;

/**
 * Runs around every `reconcile` and `cleanup`. Its return value replaces the handler's result. Without one, the result of `next`
 * stays, so that a forgotten `return` loses no `requeueAfter`. The handler is skipped unless `next` is called. Errors are
 * classified as errors of the handler.
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

/** Wraps the handler in middleware, the first one outermost. */
export function withMiddleware(use: readonly Middleware[], handler: Handler): Handler {
  return use.reduceRight<Handler>(
    (inner, middleware) => async (context) => {
      let run: InnerRun | undefined;
      const own = await middleware(context, () => {
        // A second call returns the same run: a handler must not write twice in one attempt.
        run ??= startInner(inner, context);
        return run.settled;
      });
      // A middleware ends with `next` even if it did not await it. If it caught the error, it has handled it.
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
