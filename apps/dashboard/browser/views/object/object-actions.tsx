import { defined } from "@konverge/core";
import type { AcceptedReconcile, CancelResponse, ObjectHistory } from "@konverge/contracts";
import { call } from "../../api/call.ts";
import type { KeyParts } from "../../api/object-key.ts";
import { announce } from "../../frame/announcer.tsx";
import { mayOperate } from "../../state/session.ts";
import { ActionButton } from "../../parts/action-dialog.tsx";

export interface ObjectActionsProps {
  readonly history: ObjectHistory;
  readonly parts: KeyParts;
  readonly onDone: () => void;
}

/** Operator actions on an object. The server checks permissions. */
export function ObjectActions({ history, parts, onDone }: ObjectActionsProps) {
  const { cluster, controller, namespace, name } = parts;
  const target = { cluster, controller, name, ...defined({ namespace }) };
  const { pending } = history;
  const scope = history.paused?.scope.kind;
  if (!mayOperate) return null;
  const request = async () => {
    try {
      const { coalesced } = await call<AcceptedReconcile>("v1/reconciles", {
        method: "POST",
        body: { ...target, reason: "requested on the dashboard" },
      });
      announce(coalesced ? "Already queued" : "Requested");
      onDone();
    } catch (error) {
      announce(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <div class="buttons">
      {history.deadLetter === undefined ? (
        <button type="button" class="primary" onClick={() => void request()}>
          Reconcile now
        </button>
      ) : null}
      {history.deadLetter === undefined ? null : (
        <ActionButton
          label="Release"
          primary
          explains="Retries the object and resets its counters."
          run={async (action) => {
            await call("v1/dead-letters/release", {
              method: "POST",
              body: { ...target, ...action },
            });
            onDone();
            return `${name} is retried`;
          }}
        />
      )}
      {scope === "key" ? (
        <ActionButton
          label="Resume"
          explains="Pending requests run immediately."
          run={async (action) => {
            await call("v1/pauses/resume", { method: "POST", body: { ...target, ...action } });
            onDone();
            return `${name} is resumed`;
          }}
        />
      ) : (
        <ActionButton
          label="Pause"
          explains="No attempt starts for this object until it is resumed. Requests stay queued."
          run={async (action) => {
            await call("v1/pauses", { method: "POST", body: { ...target, ...action } });
            onDone();
            return `${name} is paused`;
          }}
        />
      )}
      {pending === undefined ? null : (
        <ActionButton
          label="Cancel request"
          explains="Cancels the pending request. A running attempt is aborted unless it also serves other requests."
          run={async (action) => {
            const path = `v1/reconciles/${encodeURIComponent(pending)}/cancel`;
            const { result } = await call<CancelResponse>(path, { method: "POST", body: action });
            onDone();
            return CANCELLED[result];
          }}
        />
      )}
    </div>
  );
}

const CANCELLED: Readonly<Record<CancelResponse["result"], string>> = {
  alreadyFinished: "Already finished",
  cancelled: "Cancelled; no attempt will run for the request",
  detached: "Cancelled; other requests still reconcile it",
  aborting: "Aborting the attempt",
};
