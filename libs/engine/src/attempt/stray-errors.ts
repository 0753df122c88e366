import { AsyncLocalStorage } from "node:async_hooks";
import type { ObjectKey } from "@konverge/core";
import type { Log } from "../define/log.ts";
import { errorOfThrown } from "../define/thrown-error.ts";

/** The attempt that started an asynchronous operation. */
interface AttemptOrigin {
  readonly key: ObjectKey;
  readonly redact: (error: Error) => Error;
}

const origins = new AsyncLocalStorage<AttemptOrigin>();

/** Associates everything that `run` starts with this attempt, however late it fails. */
export function inAttempt<R>(origin: AttemptOrigin, run: () => R): R {
  return origins.run(origin, run);
}

export interface StrayErrorOptions {
  readonly log: Log;
  /** Called for an exception outside handlers, which leaves the process in an unknown state. Default: exit with code 1. */
  readonly onFatal?: () => void;
}

/**
 * Keeps the process alive if a handler leaves a promise that is rejected later, or a timer that throws: both are logged with
 * the controller and the key. Install it once per process. An exception from other code ends the process, as by default; a
 * rejection from other code is only logged. Returns the function that uninstalls it.
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

/** The thrown error and its attempt, redacted (P12). */
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
