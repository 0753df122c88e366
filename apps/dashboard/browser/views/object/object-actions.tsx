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

/** What an operator does with one object. The server refuses those who may not. */
export function ObjectActions({ history, parts, onDone }: ObjectActionsProps) {
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
      announce(coalesced ? "It was waiting already" : "Requested");
      onDone();
    } catch (error) {
      announce(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <div class="buttons">
      <button type="button" class="primary" onClick={() => void ask()}>
        Reconcile now
      </button>
      {scope === "key" ? (
        <ActionButton
          label="Resume"
          explains="What was requested meanwhile runs at once."
          run={async (action) => {
            await call("v1/pauses/resume", { method: "POST", body: { ...target, ...action } });
            onDone();
            return `${name} goes on`;
          }}
        />
      ) : (
        <ActionButton
          label="Pause"
          explains="Nothing new starts for this object until somebody resumes it. Requests are kept."
          run={async (action) => {
            await call("v1/pauses", { method: "POST", body: { ...target, ...action } });
            onDone();
            return `${name} is paused`;
          }}
        />
      )}
      {pending === undefined ? null : (
        <ActionButton
          label="Cancel"
          explains="The request that waits or runs is withdrawn. What runs is aborted, unless others asked for it too."
          run={async (action) => {
            const path = `v1/reconciles/${encodeURIComponent(pending)}/cancel`;
            const { result } = await call<CancelResponse>(path, { method: "POST", body: action });
            onDone();
            return CANCELLED[result];
          }}
        />
      )}
      {history.deadLetter === undefined ? null : (
        <ActionButton
          label="Release"
          explains="It is tried again, with its counters at zero."
          run={async (action) => {
            await call("v1/dead-letters/release", {
              method: "POST",
              body: { ...target, ...action },
            });
            onDone();
            return `${name} is tried again`;
          }}
        />
      )}
    </div>
  );
}

const CANCELLED: Readonly<Record<CancelResponse["result"], string>> = {
  alreadyFinished: "It had ended already",
  cancelled: "Withdrawn: no attempt will run for it",
  detached: "Withdrawn; others asked too, so the object is reconciled all the same",
  aborting: "Its attempt is being aborted",
};
