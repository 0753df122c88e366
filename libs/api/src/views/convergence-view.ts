import type { Activity } from "@konverge/contracts";
import { CONVERGENCE_CAUSES, type ConvergenceCause } from "@konverge/core";
import type { Rollup } from "@konverge/queue";

const TEXTS: Readonly<Record<ConvergenceCause, string>> = {
  queue: "the wait in the queue",
  retry: "failed attempts and their backoffs",
  contention: "contention",
  token: "waits for tokens of the rate limit",
  lane: "waits in object lanes",
  handler: "the handler and its API calls",
};

/** Returns the time from changes to success by cause; undefined if it was not measured. */
export function convergenceOf(
  rollups: readonly Rollup[],
  managers: Activity["managers"],
): Activity["convergence"] {
  const parts = CONVERGENCE_CAUSES.map((cause) => {
    const name = `convergence.${cause}`;
    return { cause, ms: rollups.reduce((sum, { counts }) => sum + (counts[name] ?? 0), 0) };
  }).filter(({ ms }) => ms > 0);
  const totalMs = parts.reduce((sum, { ms }) => sum + ms, 0);
  const causes = parts
    .map(({ cause, ms }) => ({ cause, ms, share: ms / totalMs }))
    .toSorted((one, other) => other.ms - one.ms);
  const [main] = causes;
  if (main === undefined) return undefined;
  const { cause, share } = main;
  const [manager] = managers;
  const rival = cause === "contention" && manager !== undefined ? ` with ${manager.manager}` : "";
  const summary = `${Math.round(share * 100)} % of the time is spent on ${TEXTS[cause]}${rival}.`;
  return { totalMs, causes, summary };
}
