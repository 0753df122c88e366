import { linkAbort } from "@konverge/core";

/** Returns a controller that is aborted with the first of these signals, which must not outlive the execution. */
export function followAbort(...signals: readonly AbortSignal[]): AbortController {
  const controller = new AbortController();
  for (const signal of signals) linkAbort(controller, signal);
  return controller;
}
