import { defined, shortName } from "@konverge/core";
import type { ComponentChildren } from "preact";
import { call, CallError } from "../api/call.ts";
import { partsOf } from "../api/object-key.ts";
import { plural } from "./format.ts";
import { ActionButton, type OperatorAction } from "./action-dialog.tsx";

/** The actions on several objects. */
const ACTIONS = {
  reconcile: {
    label: "Reconcile",
    path: "v1/reconciles",
    explains: "Enqueues each object with class interactive.",
  },
  pause: {
    label: "Pause",
    path: "v1/pauses",
    explains: "No attempt starts for these objects until they are resumed.",
  },
  resume: {
    label: "Resume",
    path: "v1/pauses/resume",
    explains: "Ends the pauses of these objects. Pending requests run immediately.",
  },
  release: {
    label: "Release",
    path: "v1/dead-letters/release",
    explains: "Retries each object and resets its counters.",
  },
  cancel: {
    label: "Cancel requests of",
    path: "v1/reconciles",
    explains:
      "Cancels the pending request of each object. A running attempt is aborted unless it also serves other requests.",
  },
} as const;

type ObjectAction = keyof typeof ACTIONS;

/** The objects among those of a list to which an action applies. Default: all. */
type Applicable = Partial<Record<ObjectAction, (key: string) => boolean>>;

/** Requests in flight. */
const AT_ONCE = 8;
const SHOWN = 12;

export interface ObjectBulkProps {
  /** Keys of the objects. */
  readonly keys: readonly string[];
  readonly actions: readonly ObjectAction[];
  readonly onDone: () => void;
  readonly applicable?: Applicable | undefined;
  /** The request of an object that can be cancelled. */
  readonly pendingOf?: ((key: string) => string | undefined) | undefined;
  /** Default: the labels of the actions with the number of objects. */
  readonly label?: string;
}

/** Buttons for actions on these objects. Each dialog lists them first. */
export function ObjectBulk({
  keys: all,
  actions,
  onDone,
  label,
  applicable = {},
  pendingOf = () => undefined,
}: ObjectBulkProps) {
  return actions.map((name) => {
    const isMeant = name === "cancel" ? pendingOf : (applicable[name] ?? (() => true));
    const keys = all.filter(isMeant);
    if (keys.length === 0) return null;
    const { label: verb, path, explains } = ACTIONS[name];
    return (
      <ActionButton
        key={name}
        quiet
        label={label ?? `${verb} ${keys.length}`}
        explains={<Preview keys={keys}>{explains}</Preview>}
        run={async (action) => {
          const failures = await act(keys, async (key) => {
            if (name !== "cancel") return await send(path, key, bodyOf(name, action));
            const id = encodeURIComponent(pendingOf(key) ?? "");
            await call(`${path}/${id}/cancel`, { method: "POST", body: action });
          });
          // The dialog stays open with the failures.
          if (failures.length > 0) throw partialFailure(failures, keys.length);
          onDone();
          return `${verb}: ${plural(keys.length, "object")}`;
        }}
      />
    );
  });
}

interface Failure {
  readonly key: string;
  readonly message: string;
}

function partialFailure(failures: readonly Failure[], all: number): CallError {
  const rest = failures.length - SHOWN;
  return new CallError({
    code: "partial",
    title: `${failures.length} of ${all} failed.`,
    detail: rest > 0 ? `The first ${SHOWN}:` : "",
    errors: failures.slice(0, SHOWN).map(({ key, message }) => ({
      pointer: shortName(partsOf(key)),
      detail: message,
    })),
  });
}

/** A request to reconcile has a reason only; its author is the caller. */
function bodyOf(name: ObjectAction, { by, reason }: OperatorAction): object {
  return name === "reconcile" ? { reason } : { by, reason };
}

function Preview({
  keys,
  children,
}: {
  readonly keys: readonly string[];
  readonly children: ComponentChildren;
}) {
  const names = keys.map((key) => `${partsOf(key).controller} ${shortName(partsOf(key))}`);
  return (
    <>
      <p>{children}</p>
      <ul class="preview" aria-label={plural(keys.length, "object")}>
        {names.slice(0, SHOWN).map((name) => (
          <li key={name}>{name}</li>
        ))}
      </ul>
      {names.length > SHOWN ? <p>and {names.length - SHOWN} more</p> : null}
    </>
  );
}

async function send(path: string, key: string, body: object): Promise<void> {
  const { cluster, controller, namespace, name } = partsOf(key);
  const target = { cluster, controller, name, ...defined({ namespace }) };
  await call(path, { method: "POST", body: { ...target, ...body } });
}

/** Acts on each object. Returns the failures. */
async function act(
  keys: readonly string[],
  one: (key: string) => Promise<void>,
): Promise<Failure[]> {
  const failures: Failure[] = [];
  const left = keys.values();
  const work = async () => {
    for (const key of left) {
      try {
        await one(key);
      } catch (error) {
        if (!(error instanceof CallError)) throw error;
        failures.push({ key, message: error.message });
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return failures;
}
