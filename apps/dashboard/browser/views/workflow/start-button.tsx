import type { StartRunResponse } from "@konverge/contracts";
import { useState } from "preact/hooks";
import { call } from "../../api/call.ts";
import { cluster } from "../../state/cluster.ts";
import { go, runHref } from "../../state/router.ts";
import { CliLine, quote } from "../../parts/cli-line.tsx";
import { jsonOf, textOf } from "../../parts/form-fields.ts";
import { ActionButton } from "../../parts/action-dialog.tsx";

export interface StartButtonProps {
  /** Workflows that there are. */
  readonly names: readonly string[];
  /** The one that is filled in. */
  readonly chosen: string | undefined;
}

/** Starts a run, and shows it. */
export function StartButton(props: StartButtonProps) {
  if (props.names.length === 0) return null;
  return (
    <ActionButton
      label="Start a run"
      asksWhy={false}
      explains="A worker takes it as soon as one is free. Input that does not fit the workflow fails the run before its first step."
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
        return created ? "Started" : "A run with this key goes on already: this is it";
      }}
    />
  );
}

/** What to start with what; the command line says the same as it is typed. */
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
        Input, as JSON
        <textarea
          name="input"
          rows={4}
          value={input}
          spellcheck={false}
          onInput={({ currentTarget }) => setInput(currentTarget.value)}
        />
      </label>
      <label>
        Key, if at most one such run may go on at a time
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
