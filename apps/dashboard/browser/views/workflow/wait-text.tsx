import type { RunList } from "@konverge/contracts";
import type { ComponentChildren } from "preact";

export type Run = RunList["items"][number];
export type Wait = NonNullable<Run["waits"]>[number];

/** What a wait is for; "waits" stands before it. */
export function waitText({ kind, step, message }: Wait): ComponentChildren {
  const name = <strong>{step}</strong>;
  switch (kind) {
    case "signal":
      return <>for signal {name}</>;
    case "sleep":
      return <>out its sleep {name}</>;
    case "child":
      return <>for its child {name}</>;
    case "step":
    case "undo":
      return <>to try {name} again</>;
    case "wait":
      return (
        <>
          for {name}
          {message === undefined ? "" : `: ${message}`}
        </>
      );
    case "now":
      return <>for {name}</>;
  }
}

/** Who ordered a cancellation or a retry, and why. */
export function authorText({ by, reason }: NonNullable<Run["cancel"]> = {}): string {
  return `by ${by ?? "another run"}${reason === undefined ? "" : `: ${reason}`}`;
}
