import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { CallError, type Trouble } from "../api/call.ts";
import { announce } from "../frame/announcer.tsx";
import { callerName, keepAuthor, mayOperate, readAuthor } from "../state/session.ts";
import { textOf } from "./form-fields.ts";
import { TroubleNote } from "./notice.tsx";

export interface OperatorAction {
  readonly by: string;
  readonly reason: string;
}

export interface ActionButtonProps {
  /** Label of the button and title of the dialog. */
  readonly label: string;
  /** Describes the effect. */
  readonly explains: ComponentChildren;
  /** Additional fields, above author and reason. */
  readonly fields?: ComponentChildren;
  /** Runs the action and returns the message to announce. `fields` are the submitted values. */
  readonly run: (action: OperatorAction, fields: FormData) => Promise<string>;
  /** Whether a reason is required. Default: true. */
  readonly needsReason?: boolean;
  readonly danger?: boolean;
  readonly quiet?: boolean;
  readonly primary?: boolean;
}

/** A button whose dialog asks for author and reason. Both are stored with the action and visible to all users. */
export function ActionButton({
  danger = false,
  quiet = false,
  primary = false,
  ...action
}: ActionButtonProps) {
  const [open, setOpen] = useState(false);
  if (!mayOperate) return null;
  const look = danger ? "danger" : primary ? "primary" : quiet ? "quiet" : "";
  return (
    <>
      <button type="button" class={look} onClick={() => setOpen(true)}>
        {action.label}
      </button>
      {open ? <ActionDialog {...action} danger={danger} close={() => setOpen(false)} /> : null}
    </>
  );
}

function ActionDialog({
  label,
  explains,
  fields: extra,
  run,
  needsReason = true,
  danger,
  close,
}: Pick<ActionButtonProps, "label" | "explains" | "fields" | "run" | "needsReason"> & {
  readonly danger: boolean;
  readonly close: () => void;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const { trouble, isBusy, submit } = useAction(run, close);
  // Opens before the next frame, so that keys pressed immediately reach the dialog.
  useLayoutEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} onClose={close} aria-labelledby="action-title">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit(event.currentTarget);
        }}
      >
        <h2 id="action-title">{label}</h2>
        <div class="explains">{explains}</div>
        {extra}
        <AuthorField />
        {needsReason ? (
          <label>
            Reason
            <input name="reason" required maxLength={200} placeholder="Visible to all users" />
          </label>
        ) : null}
        <TroubleNote trouble={trouble} />
        <div class="buttons">
          <button type="button" class="quiet" onClick={close}>
            Close
          </button>
          <button type="submit" class={danger ? "danger" : "primary"} disabled={isBusy}>
            {label}
          </button>
        </div>
      </form>
    </dialog>
  );
}

/** Runs the action with the values of a form. Closes the dialog on success. */
function useAction(run: ActionButtonProps["run"], close: () => void) {
  const [trouble, setTrouble] = useState<Trouble>();
  const [isBusy, setBusy] = useState(false);
  const submit = async (form: HTMLFormElement) => {
    const fields = new FormData(form);
    const action = { by: textOf(fields, "by"), reason: textOf(fields, "reason") };
    setBusy(true);
    try {
      const message = await run(action, fields);
      if (callerName === undefined) keepAuthor(action.by);
      close();
      announce(message);
    } catch (error) {
      setBusy(false);
      setTrouble(
        error instanceof CallError
          ? error.trouble
          : { code: "internal", title: "Action failed", detail: String(error) },
      );
    }
  };
  return { trouble, isBusy, submit };
}

function AuthorField() {
  return (
    <label>
      Your name
      <input
        name="by"
        required
        maxLength={200}
        defaultValue={readAuthor()}
        readOnly={callerName !== undefined}
        autoComplete="username"
      />
    </label>
  );
}
