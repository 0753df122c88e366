import type { ApiObject } from "@konverge/core";
import type { ReconcileContext, ReconcileResult } from "./reconcile-context.ts";

/** A controller's `reconcile` or `cleanup`. */
export type Handler<T extends ApiObject = ApiObject> = (
  context: ReconcileContext<T>,
) => Promise<ReconcileResult | void>;

/**
 * Runs around every `reconcile` and `cleanup`. Its return value replaces the handler's result. Without one, the result of `next`
 * stays, so that a forgotten `return` loses no `requeueAfter`. The handler is skipped unless `next` is called. Errors are
 * classified as errors of the handler. Await each promise that is derived from `next()`, or its error is lost.
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
      let run: NextResult | undefined;
      const own = await middleware(context, () => {
        // A second call returns the same run: a handler must not write twice in one attempt.
        run ??= new NextResult((async () => await inner(context))());
        return run;
      });
      // A middleware ends with `next` even if it did not await it. If it caught the error, it has handled it.
      if (run !== undefined && (run.isPending || !run.isUsed)) await run;
      return own ?? run?.value;
    },
    handler,
  );
}

type Result = ReconcileResult | void;

/** The promise that `next` returns. Notes whether the middleware uses it. */
class NextResult extends Promise<Result> {
  isPending = true;
  /** True if the middleware awaits it or has given it a callback. */
  isUsed = false;
  value: Result = undefined;

  constructor(run: Promise<Result>) {
    super((resolve) => resolve(run));
    const end = (value: Result) => {
      this.isPending = false;
      this.value = value;
    };
    // Handles the error, which may come while the middleware awaits something else.
    super.then(end, () => end(undefined));
  }

  /** Promises that derive from it are plain ones. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  // oxlint-disable-next-line unicorn/no-thenable -- a promise
  override then<A = Result, B = never>(
    onFulfilled?: ((value: Result) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.isUsed = true;
    return super.then(onFulfilled, onRejected);
  }
}
