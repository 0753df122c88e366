import { defined, ensureError, parseKey } from "@konverge/core";
import { recordEvent, type KubeClient } from "@konverge/kube";
import type { Controller } from "../define/define-controller.ts";
import type { Log } from "../define/log.ts";

export interface WarningEvent {
  readonly key: string;
  /** `kubectl describe` finds Events by it. */
  readonly uid: string | undefined;
  readonly reason:
    | "AttemptsLost"
    | "RepeatedConflicts"
    | "RepeatedFailures"
    | "OwnershipFlip"
    | "ReconcileLoop";
  /** Names and paths, never values (P12). */
  readonly message: string;
}

/** Records a Warning Event for the object of a key, at the lowest priority. Best effort, because the log has the same report. */
export function emitEvent(
  { key, uid, reason, message }: WarningEvent,
  to: { readonly client: KubeClient; readonly controller: Controller; readonly log: Log },
): void {
  const { client, controller, log } = to;
  // A controller that observes writes nothing, not even Events.
  if (controller.mode === "observe") return;
  const { namespace, name } = parseKey(key);
  recordEvent(client.scoped({ priority: "resync" }), {
    regarding: {
      ...controller.for,
      name,
      ...defined({ namespace, uid }),
    },
    type: "Warning",
    reason,
    message: `${controller.name}: ${message}`,
    component: `konverge/${controller.name}`,
  }).catch((error: unknown) => log.debug({ err: ensureError(error) }, "event not recorded"));
}
