import type { AcceptedReconcile, CancelAnswer, ObjectHistory } from "@konverge/contracts";
import { call } from "../../api/call.ts";
import type { KeyParts } from "../../api/object-key.ts";
import { say } from "../../frame/announcer.tsx";
import { mayOperate } from "../../state/session.ts";
import { OrderButton } from "../../parts/order-dialog.tsx";

export interface ObjectOrdersProps {
  readonly history: ObjectHistory;
  readonly parts: KeyParts;
  readonly onDone: () => void;
}

/** What an operator does with one object. The server refuses those who may not. */
export function ObjectOrders({ history, parts, onDone }: ObjectOrdersProps) {
  const { cluster, controller, namespace, name } = parts;
  const target = { cluster, controller, name, ...(namespace === undefined ? {} : { namespace }) };
  const { pending } = history;
  const scope = history.paused?.scope.kind;
  if (!mayOperate) return null;
  const ask = async () => {
    try {
      const { coalesced } = await call<AcceptedReconcile>("v1/reconciles", {
        method: "POST",
        body: { ...target, reason: "asked for on the dashboard" },
      });
      say(coalesced ? "It was waiting already" : "Requested");
      onDone();
    } catch (error) {
      say(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <div class="buttons">
      <button type="button" class="primary" onClick={() => void ask()}>
        Reconcile now
      </button>
      {scope === "key" ? (
        <OrderButton
          label="Resume"
          explains="What was requested meanwhile runs at once."
          run={async (order) => {
            await call("v1/pauses/resume", { method: "POST", body: { ...target, ...order } });
            onDone();
            return `${name} goes on`;
          }}
        />
      ) : (
        <OrderButton
          label="Pause"
          explains="Nothing new starts for this object until somebody resumes it. Requests are kept."
          run={async (order) => {
            await call("v1/pauses", { method: "POST", body: { ...target, ...order } });
            onDone();
            return `${name} is paused`;
          }}
        />
      )}
      {pending === undefined ? null : (
        <OrderButton
          label="Cancel"
          explains="The request that waits or runs is withdrawn. What runs is aborted, unless others asked for it too."
          run={async (order) => {
            const path = `v1/reconciles/${encodeURIComponent(pending)}/cancel`;
            const { result } = await call<CancelAnswer>(path, { method: "POST", body: order });
            onDone();
            return CANCELLED[result];
          }}
        />
      )}
      {history.dead === undefined ? null : (
        <OrderButton
          label="Release"
          explains="It is tried again, with its counters at zero."
          run={async (order) => {
            await call("v1/dead-letters/release", {
              method: "POST",
              body: { ...target, ...order },
            });
            onDone();
            return `${name} is tried again`;
          }}
        />
      )}
    </div>
  );
}

const CANCELLED: Readonly<Record<CancelAnswer["result"], string>> = {
  finished: "It had ended already",
  withdrawn: "Withdrawn: no attempt will run for it",
  shared: "Withdrawn; others asked too, so the object is reconciled all the same",
  aborting: "Its attempt is being aborted",
};
