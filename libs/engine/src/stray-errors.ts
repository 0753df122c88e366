import { AsyncLocalStorage } from "node:async_hooks";
import type { ObjectKey } from "@konverge/core";
import type { Log } from "./log.ts";
import { errorOfThrown } from "./thrown-error.ts";

/** The attempt in which something was started. */
interface AttemptOrigin {
  readonly key: ObjectKey;
  readonly redact: (error: Error) => Error;
}

const origins = new AsyncLocalStorage<AttemptOrigin>();

/** Whatever `run` starts, however late it fails, can be traced to this attempt. */
export function inAttempt<R>(origin: AttemptOrigin, run: () => R): R {
  return origins.run(origin, run);
}

export interface StrayErrorOptions {
  readonly log: Log;
  /** An exception that no handler caused: the state of the process is unknown. Default: exit with code 1. */
  readonly onFatal?: () => void;
}

/**
 * Keeps this process alive when a handler leaves a promise that is rejected later, or a timer that throws: both are logged
 * with the controller and the key. Install it once per process. An exception from elsewhere ends the process, as it does
 * without this; a rejection from elsewhere is only logged. Returns what takes it off again.
 */
export function reportStrayErrors(options: StrayErrorOptions): () => void {
  const { log, onFatal = () => process.exit(1) } = options;
  const report = (thrown: unknown, origin: AttemptOrigin | undefined, message: string) => {
    const safe = errorOfThrown(thrown);
    const { name, message: text, stack } = origin?.redact(safe) ?? safe;
    const err = { type: name, message: text, ...(origin === undefined ? { stack } : {}) };
    if (origin === undefined) return log.error({ err }, message);
    const { controller, namespace, name: object } = origin.key;
    log.error({ controller, namespace, name: object, err }, message);
  };
  const onRejection = (reason: unknown) => {
    report(
      reason,
      origins.getStore(),
      "a promise was rejected and nobody handled it; await it in the handler",
    );
  };
  const onException = (thrown: unknown) => {
    const origin = origins.getStore();
    if (origin !== undefined) {
      report(thrown, origin, "a timer or listener that a handler left behind threw");
      return;
    }
    report(thrown, undefined, "an exception that nobody caught; the process ends");
    onFatal();
  };
  process.on("unhandledRejection", onRejection);
  process.on("uncaughtException", onException);
  return () => {
    process.off("unhandledRejection", onRejection);
    process.off("uncaughtException", onException);
  };
}
