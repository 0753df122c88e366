import type { StartRunResponse } from "@konverge/contracts";
import { useState } from "preact/hooks";
import { call } from "../../api/call.ts";
import { cluster } from "../../state/cluster.ts";
import { go, runHref } from "../../state/router.ts";
import { CliLine, quote } from "../../parts/cli-line.tsx";
import { jsonOf, textOf } from "../../parts/form-fields.ts";
import { ActionButton } from "../../parts/action-dialog.tsx";

export interface StartButtonProps {
  /** All workflows. */
  readonly names: readonly string[];
  /** The default. */
  readonly chosen: string | undefined;
}

/** Starts a run and shows its page. */
export function StartButton(props: StartButtonProps) {
  if (props.names.length === 0) return null;
  return (
    <ActionButton
      label="Start run"
      needsReason={false}
      explains="The next free worker executes the run. Input that the workflow rejects fails the run before its first step."
      fields={<StartFields {...props} />}
      run={async ({ by }, fields) => {
        const key = textOf(fields, "key").trim();
        const body = {
          workflow: textOf(fields, "workflow"),
          cluster: cluster.value,
          by,
          ...jsonOf(fields, "input"),
          ...(key === "" ? {} : { key }),
        };
        const { id, created } = await call<StartRunResponse>("v1/runs", { method: "POST", body });
        go(runHref(id));
        return created ? "Run started" : "A run with this key is already active";
      }}
    />
  );
}

/** The workflow, input and key of a run, with the equivalent command. */
function StartFields({ names, chosen = names[0] ?? "" }: StartButtonProps) {
  const [workflow, setWorkflow] = useState(chosen);
  const [input, setInput] = useState("");
  const [key, setKey] = useState("");
  const flags = [
    ...(input.trim() === "" ? [] : [`--input ${quote(input.trim())}`]),
    ...(key.trim() === "" ? [] : [`--key ${quote(key.trim())}`]),
  ];
  return (
    <>
      <label>
        Workflow
        <select
          name="workflow"
          value={workflow}
          onChange={({ currentTarget }) => setWorkflow(currentTarget.value)}
        >
          {names.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label>
        Input (JSON)
        <textarea
          name="input"
          rows={4}
          value={input}
          spellcheck={false}
          onInput={({ currentTarget }) => setInput(currentTarget.value)}
        />
      </label>
      <label>
        Key (at most one active run per key)
        <input
          name="key"
          maxLength={500}
          pattern="\S*"
          title="without spaces"
          value={key}
          spellcheck={false}
          autoComplete="off"
          onInput={({ currentTarget }) => setKey(currentTarget.value)}
        />
      </label>
      <CliLine line={["konverge run start", quote(workflow), ...flags].join(" ")} />
    </>
  );
}
