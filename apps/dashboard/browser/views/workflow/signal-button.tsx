import type { RunDetail } from "@konverge/contracts";
import { useState } from "preact/hooks";
import { call } from "../../api/call.ts";
import { CliLine, quote } from "../../parts/cli-line.tsx";
import { jsonOf, textOf } from "../../parts/form-fields.ts";
import { ActionButton } from "../../parts/action-dialog.tsx";
import type { RunActionsProps } from "./run-actions-props.ts";

/** Sends a signal to the run. The name defaults to the signal that the run waits for. */
export function SignalButton({ run, onDone }: RunActionsProps) {
  return (
    <ActionButton
      label="Send signal"
      primary={run.waits?.some(({ kind }) => kind === "signal") === true}
      needsReason={false}
      explains="Delivered once, even if the run does not wait for it yet. The run records the sender."
      fields={<SignalFields run={run} />}
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

/** The name and payload of a signal, with the equivalent command. */
function SignalFields({ run }: { readonly run: RunDetail }) {
  const waits = (run.waits ?? []).filter(({ kind }) => kind === "signal");
  const [name, setName] = useState(waits[0]?.step.replace(/#\d+$/, "") ?? "");
  const [payload, setPayload] = useState("");
  const flag = payload.trim() === "" ? "" : ` --payload ${quote(payload.trim())}`;
  return (
    <>
      <label>
        Signal
        <input
          name="signal"
          required
          maxLength={200}
          value={name}
          spellcheck={false}
          autoComplete="off"
          onInput={({ currentTarget }) => setName(currentTarget.value)}
        />
      </label>
      <label>
        Payload (JSON)
        <textarea
          name="payload"
          rows={4}
          value={payload}
          placeholder='{"by": "ann"}'
          spellcheck={false}
          onInput={({ currentTarget }) => setPayload(currentTarget.value)}
        />
      </label>
      <CliLine line={`konverge run signal ${quote(run.id)} ${quote(name || "SIGNAL")}${flag}`} />
    </>
  );
}
