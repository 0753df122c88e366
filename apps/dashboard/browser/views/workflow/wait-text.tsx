import type { RunList } from "@konverge/contracts";
import type { ComponentChildren } from "preact";
import { plural } from "../../parts/format.ts";

export type Run = RunList["items"][number];
export type Wait = NonNullable<Run["waits"]>[number];

/** Describes a wait, to follow "waiting". */
export function waitText({ kind, step, message }: Wait): ComponentChildren {
  const name = <strong>{step}</strong>;
  switch (kind) {
    case "signal":
      return <>for signal {name}</>;
    case "update":
      return <>for update {name}</>;
    case "sleep":
      return <>for sleep {name}</>;
    case "child":
      return <>for child {name}</>;
    case "step":
    case "undo":
      return <>to retry {name}</>;
    case "wait":
      return (
        <>
          for {name}
          {message === undefined ? "" : `: ${message}`}
        </>
      );
    case "now":
    case "race":
      return <>for {name}</>;
  }
}

/** Describes the wait for a slot, to follow "waiting". */
export function slotText({ group, ahead }: NonNullable<Run["slotWait"]>): string {
  const key = group === undefined ? "" : ` of "${group}"`;
  return `for a slot${key}${ahead === undefined ? "" : `, ${plural(ahead, "run")} before it`}`;
}

/** Formats the author and reason of a cancellation or retry. */
export function authorText({ by, reason }: NonNullable<Run["cancel"]> = {}): string {
  return `by ${by ?? "another run"}${reason === undefined ? "" : `: ${reason}`}`;
}

/** Returns the author and reason of the cancellation or termination that ended a run. */
export function endText({
  cancel,
  terminated,
}: {
  readonly cancel?: Run["cancel"];
  readonly terminated?: Run["terminated"];
}): string {
  return terminated === undefined ? authorText(cancel) : `terminated ${authorText(terminated)}`;
}
