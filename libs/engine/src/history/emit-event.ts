import { defined, ensureError, parseKey } from "@konverge/core";
import { recordEvent, type KubeClient } from "@konverge/kube";
import type { Controller } from "../define/define-controller.ts";
import type { Log } from "../define/log.ts";

export interface ToldEvent {
  readonly key: string;
  /** By which `kubectl describe` looks for Events. */
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

/** Records a Warning Event on the object of a key, behind all other calls. Best effort: the log has said it already. */
export function emitEvent(
  { key, uid, reason, message }: ToldEvent,
  to: { readonly client: KubeClient; readonly controller: Controller; readonly log: Log },
): void {
  const { client, controller, log } = to;
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
