import type { RunDetail } from "@konverge/contracts";
import { call } from "../../api/call.ts";
import { go, runHref } from "../../state/router.ts";
import { mayOperate } from "../../state/session.ts";
import { CliLine, quote } from "../../parts/cli-line.tsx";
import { ActionButton } from "../../parts/action-dialog.tsx";
import { idOf } from "../../api/run-id.ts";
import { SignalButton } from "./signal-button.tsx";

export interface RunActionsProps {
  readonly run: RunDetail;
  readonly onDone: () => void;
}

/** What an operator does with one run. The server refuses those who may not. */
export function RunActions(props: RunActionsProps) {
  if (!mayOperate) return null;
  const { status, cancel } = props.run;
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
    case "compensating":
      return (
        <div class="buttons">
          {status === "blocked" ? <LookButton {...props} /> : null}
          <SignalButton {...props} />
          {cancel === undefined ? <CancelButton {...props} /> : null}
        </div>
      );
  }
}

function CancelButton({ run: { id }, onDone }: RunActionsProps) {
  return (
    <ActionButton
      label="Cancel run"
      danger
      explains={
        <>
          What it is at is told to stop; then each recorded step that can be undone is, the last
          first.
          <CliLine line={`konverge run cancel ${quote(id)} --reason WHY`} />
        </>
      }
      run={async (action) => {
        const path = `v1/runs/${encodeURIComponent(id)}/cancel`;
        await call(path, { method: "POST", body: action });
        onDone();
        return `${idOf(id)} is being cancelled`;
      }}
    />
  );
}

/** Asks for a retry, and shows the run that goes on. */
async function retry({ run: { id }, onDone }: RunActionsProps, body: object): Promise<string> {
  const path = `v1/runs/${encodeURIComponent(id)}/retry`;
  const next = await call<RunDetail>(path, { method: "POST", body });
  if (next.id === id) {
    onDone();
    return `${idOf(id)} goes on`;
  }
  go(runHref(next.id));
  return `${idOf(next.id)} begins from the start`;
}

function LookButton(props: RunActionsProps) {
  return (
    <ActionButton
      label="Look again"
      explains={
        <>
          A worker looks at it at once, in place of within a minute; what could not be undone is
          tried again.
          <CliLine line={`konverge run retry ${quote(props.run.id)} --reason WHY`} />
        </>
      }
      run={(action) => retry(props, action)}
    />
  );
}

function RetryButtons(props: RunActionsProps) {
  const { id, steps } = props.run;
  const wasUndone = steps.some(({ kind }) => kind === "undo");
  return (
    <div class="buttons">
      {wasUndone ? null : (
        <ActionButton
          label="Go on from what failed"
          explains={
            <>
              The same run goes on. What was recorded before the first failure is kept; the rest
              runs again.
              <CliLine line={`konverge run retry ${quote(id)} --from-failed-step --reason WHY`} />
            </>
          }
          run={(action) => retry(props, { ...action, fromFailed: true })}
        />
      )}
      <ActionButton
        label="Run again"
        explains={
          <>
            Another run begins from the start, with the same input and key, in the version of today.
            This one stays as it is.
            <CliLine line={`konverge run retry ${quote(id)} --reason WHY`} />
          </>
        }
        run={(action) => retry(props, action)}
      />
    </div>
  );
}
