import { defined } from "@konverge/core";
import type { ComponentChildren } from "preact";
import { call, CallError } from "../api/call.ts";
import { partsOf, shortName } from "../api/object-key.ts";
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
} as const;

export type ObjectAction = keyof typeof ACTIONS;

/** Requests in flight. */
const AT_ONCE = 8;
const SHOWN = 12;

export interface ObjectBulkProps {
  /** Keys of the objects. */
  readonly keys: readonly string[];
  readonly actions: readonly ObjectAction[];
  readonly onDone: () => void;
  /** Default: the labels of the actions with the number of objects. */
  readonly label?: string;
}

/** Buttons for actions on these objects. Each dialog lists them first. */
export function ObjectBulk({ keys, actions, onDone, label }: ObjectBulkProps) {
  return actions.map((name) => (
    <ActionButton
      key={name}
      quiet
      label={label ?? `${ACTIONS[name].label} ${keys.length}`}
      explains={<Preview keys={keys}>{ACTIONS[name].explains}</Preview>}
      run={async (action) => {
        const failures = await act(ACTIONS[name].path, keys, bodyOf(name, action));
        onDone();
        const done = keys.length - failures.length;
        const [first] = failures;
        return `${ACTIONS[name].label}: ${plural(done, "object")}${first === undefined ? "" : `; ${failures.length} failed, first ${first}`}`;
      }}
    />
  ));
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

/** Sends one request per object. Returns the failures. */
async function act(path: string, keys: readonly string[], body: object): Promise<string[]> {
  const failures: string[] = [];
  const left = keys.values();
  const work = async () => {
    for (const key of left) {
      const { cluster, controller, namespace, name } = partsOf(key);
      try {
        await call(path, {
          method: "POST",
          body: { cluster, controller, name, ...defined({ namespace }), ...body },
        });
      } catch (error) {
        if (!(error instanceof CallError)) throw error;
        failures.push(`${name}: ${error.message}`);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return failures;
}
