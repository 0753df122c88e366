import { call } from "../../api/call.ts";
import { jsonOf, textOf } from "../../parts/form-fields.ts";
import { ActionButton } from "../../parts/action-dialog.tsx";
import { MessageFields } from "./message-fields.tsx";
import type { RunActionsProps } from "./run-actions-props.ts";

/** Sends a signal to the run. */
export function SignalButton({ run, onDone }: RunActionsProps) {
  return (
    <ActionButton
      label="Send signal"
      primary={run.waits?.some(({ kind }) => kind === "signal") === true}
      needsReason={false}
      explains="Delivered once, even if the run does not wait for it yet. The run records the sender."
      fields={<MessageFields run={run} kind="signal" />}
      run={async ({ by }, fields) => {
        const name = textOf(fields, "signal");
        const payload = jsonOf(fields, "payload");
        const path = `v1/runs/${encodeURIComponent(run.id)}/signal`;
        await call(path, { method: "POST", body: { name, by, ...payload } });
        onDone();
        return `Signal ${name} sent`;
      }}
    />
  );
}
