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
  /** What the button says, and the dialog's title. */
  readonly label: string;
  /** What will happen, before it does. */
  readonly explains: ComponentChildren;
  /** Fields of its own, above who and why. */
  readonly fields?: ComponentChildren;
  /** Does it, and answers what to tell. `fields` as they were filled in. */
  readonly run: (action: OperatorAction, fields: FormData) => Promise<string>;
  /** Asks for a reason. Default: true. */
  readonly asksWhy?: boolean;
  readonly danger?: boolean;
  readonly quiet?: boolean;
  readonly primary?: boolean;
}

/** A button that asks who and why first: every order is kept with both, and shown to all. */
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
  asksWhy = true,
  danger,
  close,
}: Pick<ActionButtonProps, "label" | "explains" | "fields" | "run" | "asksWhy"> & {
  readonly danger: boolean;
  readonly close: () => void;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [trouble, setTrouble] = useState<Trouble>();
  const [busy, setBusy] = useState(false);
  // Before the next frame: keys that are pressed at once are the dialog's, and not the button's.
  useLayoutEffect(() => {
    dialog.current?.showModal();
  }, []);
  const submit = async (form: HTMLFormElement) => {
    const fields = new FormData(form);
    const action = { by: textOf(fields, "by"), reason: textOf(fields, "reason") };
    setBusy(true);
    try {
      const told = await run(action, fields);
      if (callerName === undefined) keepAuthor(action.by);
      close();
      announce(told);
    } catch (error) {
      setBusy(false);
      setTrouble(
        error instanceof CallError
          ? error.trouble
          : { code: "internal", title: "It did not work", detail: String(error) },
      );
    }
  };
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
        <label>
          Who you are
          <input
            name="by"
            required
            maxLength={200}
            defaultValue={readAuthor()}
            readOnly={callerName !== undefined}
            autoComplete="username"
          />
        </label>
        {asksWhy ? (
          <label>
            Why
            <input
              name="reason"
              required
              maxLength={200}
              placeholder="Shown to everyone who wonders"
            />
          </label>
        ) : null}
        <TroubleNote trouble={trouble} />
        <div class="buttons">
          <button type="button" class="quiet" onClick={close}>
            Leave it
          </button>
          <button type="submit" class={danger ? "danger" : "primary"} disabled={busy}>
            {label}
          </button>
        </div>
      </form>
    </dialog>
  );
}
