import type { CancelRunResponse, PauseRunResponse, RunDetail } from "@konverge/contracts";
import { call } from "../../api/call.ts";
import { go, runHref } from "../../state/router.ts";
import { textOf } from "../../parts/form-fields.ts";
import { mayOperate } from "../../state/session.ts";
import { CliLine, quote } from "../../parts/cli-line.tsx";
import { ActionButton } from "../../parts/action-dialog.tsx";
import { idOf } from "../../api/run-id.ts";
import type { RunActionsProps } from "./run-actions-props.ts";
import { SignalButton } from "./signal-button.tsx";
import { UpdateButton } from "./update-button.tsx";

/** Operator actions on a run. The server checks permissions. */
export function RunActions(props: RunActionsProps) {
  if (!mayOperate) return null;
  const { status, undosLeft = [] } = props.run;
  switch (status) {
    case "done":
      return null;
    case "failed":
    case "cancelled":
      return <RetryButtons {...props} />;
    case "queued":
    case "running":
    case "waiting":
    case "blocked":
    case "pausing":
    case "paused":
    case "compensating":
      return (
        <div class="buttons">
          {status === "blocked" ? <RecheckButton {...props} /> : null}
          {limitsOf(props.run).length > 0 ? <RaiseButton {...props} /> : null}
          {status === "blocked" && undosLeft.length > 0 ? <SkipUndoButton {...props} /> : null}
          <UpdateButton {...props} />
          <SignalButton {...props} />
          {props.run.pause === undefined ? <PauseButton {...props} /> : <ResumeButton {...props} />}
          {status === "compensating" ? null : <CancelButton {...props} />}
          <TerminateButton {...props} />
        </div>
      );
  }
}

function CancelButton({ run: { id, cancel }, onDone }: RunActionsProps) {
  return (
    <ActionButton
      label={cancel === undefined ? "Cancel run" : "Cancel again"}
      danger
      explains={
        <>
          Aborts the current step. Then compensates the recorded steps in reverse order, where they
          define a compensation.
          <CliLine line={`konverge run cancel ${quote(id)} --reason WHY`} />
        </>
      }
      run={async (action) => {
        const path = `v1/runs/${encodeURIComponent(id)}/cancel`;
        const { note } = await call<CancelRunResponse>(path, { method: "POST", body: action });
        onDone();
        return note ?? `${idOf(id)} is being cancelled`;
      }}
    />
  );
}

function PauseButton({ run: { id }, onDone }: RunActionsProps) {
  return (
    <ActionButton
      label="Pause run"
      explains={
        <>
          Running bodies end and are recorded. Then no step begins, and no signal or timer takes
          effect, until the run is resumed.
          <CliLine line={`konverge run pause ${quote(id)} --reason WHY`} />
        </>
      }
      run={async (action) => {
        const path = `v1/runs/${encodeURIComponent(id)}/pause`;
        const { note } = await call<PauseRunResponse>(path, { method: "POST", body: action });
        onDone();
        return note ?? `${idOf(id)} is paused`;
      }}
    />
  );
}

function ResumeButton({ run: { id }, onDone }: RunActionsProps) {
  return (
    <ActionButton
      label="Resume run"
      explains={
        <>
          The run continues at once, with the signals and timers that came due during the pause.
          <CliLine line={`konverge run resume ${quote(id)} --reason WHY`} />
        </>
      }
      run={async (action) => {
        const path = `v1/runs/${encodeURIComponent(id)}/resume`;
        const { note } = await call<PauseRunResponse>(path, { method: "POST", body: action });
        onDone();
        return note ?? `${idOf(id)} is resumed`;
      }}
    />
  );
}

function TerminateButton({ run: { id }, onDone }: RunActionsProps) {
  return (
    <ActionButton
      label="Terminate run"
      danger
      explains={
        <>
          Ends the run at once, without compensation: no step is undone. Use it only if the run
          cannot end by itself; cancel it otherwise.
          <CliLine line={`konverge run terminate ${quote(id)} --reason WHY`} />
        </>
      }
      run={async (action) => {
        const path = `v1/runs/${encodeURIComponent(id)}/terminate`;
        await call(path, { method: "POST", body: action });
        onDone();
        return `${idOf(id)} is terminated`;
      }}
    />
  );
}

/** Requests a retry and shows the run that results. */
async function retry({ run: { id }, onDone }: RunActionsProps, body: object): Promise<string> {
  const path = `v1/runs/${encodeURIComponent(id)}/retry`;
  const next = await call<RunDetail>(path, { method: "POST", body });
  if (next.id === id) {
    onDone();
    return `${idOf(id)} is retried`;
  }
  go(runHref(next.id));
  return `${idOf(next.id)} is started`;
}

function RecheckButton(props: RunActionsProps) {
  return (
    <ActionButton
      label="Recheck now"
      explains={
        <>
          Rechecks the run immediately instead of within a minute. Failed compensations are retried.
          <CliLine line={`konverge run retry ${quote(props.run.id)} --reason WHY`} />
        </>
      }
      run={(action) => retry(props, action)}
    />
  );
}

const LIMITS = {
  many_steps: { name: "steps", title: "Recorded steps", least: 5_000, most: 100_000 },
  many_bytes: { name: "bytes", title: "Bytes of all records", least: 16_777_216, most: 67_108_864 },
} as const;

/** The limits that a blocked run has reached or comes near. */
function limitsOf({ status, warnings = [] }: RunDetail) {
  if (status !== "blocked") return [];
  return warnings.flatMap(({ code }) =>
    code === "many_steps" || code === "many_bytes" ? [LIMITS[code]] : [],
  );
}

function RaiseButton({ run, onDone }: RunActionsProps) {
  const limits = limitsOf(run);
  return (
    <ActionButton
      label="Raise limit"
      explains={
        <>
          Raises the limit of this run only, which then continues. Each execution reads all records.
          <CliLine line={`konverge run raise ${quote(run.id)} --steps N --bytes N --reason WHY`} />
        </>
      }
      fields={limits.map(({ name, title, least, most }) => (
        <label key={name}>
          {title}
          <input name={name} type="number" min="1" max={most} value={least} required />
        </label>
      ))}
      run={async (action, fields) => {
        const path = `v1/runs/${encodeURIComponent(run.id)}/raise`;
        const raised = limits.map(({ name }) => [name, Number(textOf(fields, name))]);
        const body = { ...action, ...Object.fromEntries(raised) };
        await call(path, { method: "POST", body });
        onDone();
        return `${idOf(run.id)} continues`;
      }}
    />
  );
}

function SkipUndoButton(props: RunActionsProps) {
  const { id, undosLeft = [] } = props.run;
  return (
    <ActionButton
      label="Skip compensation"
      danger
      explains={
        <>
          The compensation continues, but this step is not undone. The run records the author and
          reason.
          <CliLine line={`konverge run retry ${quote(id)} --skip-undo STEP --reason WHY`} />
        </>
      }
      fields={
        <label>
          Step
          <select name="step">
            {undosLeft.map((step) => (
              <option key={step} value={step}>
                {step}
              </option>
            ))}
          </select>
        </label>
      }
      run={(action, fields) => retry(props, { ...action, skipUndo: textOf(fields, "step") })}
    />
  );
}

function RetryButtons(props: RunActionsProps) {
  const { id, steps } = props.run;
  const wasUndone = steps.some(({ kind }) => kind === "undo");
  return (
    <div class="buttons">
      {wasUndone || steps.length === 0 ? null : (
        <ActionButton
          label="Retry from the failed step"
          explains={
            <>
              Continues the same run. Steps recorded before the first failure are kept; all others
              run again.
              <CliLine line={`konverge run retry ${quote(id)} --from-failed-step --reason WHY`} />
            </>
          }
          run={(action) => retry(props, { ...action, fromFailed: true })}
        />
      )}
      <ActionButton
        label="Retry as a new run"
        explains={
          <>
            Starts a new run with the same input and key, in the current version. This run does not
            change.
            <CliLine line={`konverge run retry ${quote(id)} --reason WHY`} />
          </>
        }
        run={(action) => retry(props, action)}
      />
    </div>
  );
}
