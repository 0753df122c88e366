import type { RunDetail } from "@konverge/contracts";
import { useState } from "preact/hooks";
import { CliLine, quote } from "../../parts/cli-line.tsx";

/** The name and payload of a signal or update, with the equivalent command. The name defaults to what the run waits for. */
export function MessageFields({
  run,
  kind,
}: {
  readonly run: RunDetail;
  readonly kind: "signal" | "update";
}) {
  const waits = (run.waits ?? []).filter((wait) => wait.kind === kind);
  const [name, setName] = useState(waits[0]?.step.replace(/#\d+$/, "") ?? "");
  const [payload, setPayload] = useState("");
  const flag = payload.trim() === "" ? "" : ` --payload ${quote(payload.trim())}`;
  const shown = quote(name || kind.toUpperCase());
  return (
    <>
      <label>
        {kind === "signal" ? "Signal" : "Update"}
        <input
          name={kind}
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
      <CliLine line={`konverge run ${kind} ${quote(run.id)} ${shown}${flag}`} />
    </>
  );
}
