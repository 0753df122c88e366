import type { RunUpdate } from "@konverge/contracts";
import { useState } from "preact/hooks";
import { call } from "../../api/call.ts";
import { jsonOf, textOf } from "../../parts/form-fields.ts";
import { ActionButton } from "../../parts/action-dialog.tsx";
import { MessageFields } from "./message-fields.tsx";
import type { RunActionsProps } from "./run-actions-props.ts";

const WAIT_S = 20;

/** Sends an update to a run that has waited for one while the page was open, and announces its answer. */
export function UpdateButton({ run, onDone }: RunActionsProps) {
  const isAwaited = run.waits?.some(({ kind }) => kind === "update") === true;
  const [isShown, setShown] = useState(isAwaited);
  // Kept while the run handles an update: the dialog shows its refusal.
  if (isAwaited && !isShown) setShown(true);
  if (!isShown) return null;
  return (
    <ActionButton
      label="Send update"
      primary={isAwaited}
      needsReason={false}
      explains="The run checks the update, then accepts it with an answer or refuses it. It records the sender."
      fields={<MessageFields run={run} kind="update" />}
      run={async ({ by }, fields) => {
        const name = textOf(fields, "update");
        const payload = jsonOf(fields, "payload");
        const path = `v1/runs/${encodeURIComponent(run.id)}/update`;
        const body = { name, by, ...payload };
        const update = await call<RunUpdate>(path, { method: "POST", body, waitS: WAIT_S });
        onDone();
        if (update.status === "pending") return `Update ${name} sent, not yet handled`;
        const answer = update.answer === undefined ? "" : `: ${JSON.stringify(update.answer)}`;
        return `Update ${name} accepted${answer}`;
      }}
    />
  );
}
