import { AsyncLocalStorage } from "node:async_hooks";
import type { ObjectKey } from "@konverge/core";
import type { Log } from "../define/log.ts";
import { errorOfThrown } from "../define/thrown-error.ts";

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
  const onRejection = (reason: unknown) => {
    log.error(fieldsOf(reason), "unhandled promise rejection");
  };
  const onException = (thrown: unknown) => {
    if (origins.getStore() === undefined) {
      log.error(fieldsOf(thrown), "uncaught exception, process exiting");
      onFatal();
      return;
    }
    log.error(fieldsOf(thrown), "uncaught exception in a handler's timer or listener");
  };
  process.on("unhandledRejection", onRejection);
  process.on("uncaughtException", onException);
  return () => {
    process.off("unhandledRejection", onRejection);
    process.off("uncaughtException", onException);
  };
}

/** What was thrown, and by which attempt; of the latter nothing but what may leave it (P12). */
function fieldsOf(thrown: unknown): object {
  const error = errorOfThrown(thrown);
  const origin = origins.getStore();
  if (origin === undefined) {
    const { name, message, stack } = error;
    return { err: { type: name, message, stack } };
  }
  const { name: type, message } = origin.redact(error);
  const { controller, namespace, name } = origin.key;
  return { controller, namespace, name, err: { type, message } };
}
