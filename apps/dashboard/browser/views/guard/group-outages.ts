import type { GuardView } from "@konverge/contracts";

type Transition = GuardView["transitions"][number];

/** The time from the moment that a breaker left `closed` until it was closed again. */
export interface Outage {
  /** The transition that opened or isolated it; undefined if it is not stored any more. */
  readonly opened: Transition | undefined;
  /** Undefined while it lasts. */
  readonly closed: Transition | undefined;
  readonly failedProbes: number;
  /** All stored transitions, newest first. */
  readonly transitions: readonly Transition[];
}

/** Groups transitions, newest first, by outage. */
export function groupOutages(transitions: readonly Transition[]): Outage[] {
  const groups: Transition[][] = [];
  for (const transition of transitions) {
    if (groups.length === 0 || transition.to === "closed") groups.push([]);
    groups.at(-1)?.push(transition);
  }
  return groups.map((group) => ({
    opened: group.find(({ from }) => from === "closed"),
    closed: group.find(({ to }) => to === "closed"),
    failedProbes: group.filter(({ to, reason }) => to === "open" && reason === "probe").length,
    transitions: group,
  }));
}
