import type { Activity } from "@konverge/contracts";
import { CONVERGENCE_CAUSES, type ConvergenceCause } from "@konverge/core";
import type { AnnouncedController, Rollup } from "@konverge/queue";

const TEXTS: Readonly<Record<ConvergenceCause, string>> = {
  queue: "the wait in the queue",
  pause: "pauses",
  outage: "waits for the API server",
  retry: "failed attempts and their backoffs",
  contention: "contention",
  token: "waits for tokens of the rate limit",
  lane: "waits in object lanes",
  handler: "the handler and its API calls",
};

type Causes = NonNullable<Activity["convergence"]>["causes"];

/** Returns the time from changes to success by cause; undefined if it was not measured. */
export function convergenceOf(
  rollups: readonly Rollup[],
  managers: Activity["managers"],
): Activity["convergence"] {
  const causes = causesOf(rollups, "convergence");
  const share = describeShare(causes, managers);
  if (share === undefined) return undefined;
  const totalMs = causes.reduce((sum, { ms }) => sum + ms, 0);
  return { totalMs, causes, summary: `${share.percent} of the time is spent on ${share.cause}.` };
}

/** Returns how the changes of a controller met its objective. */
export function sloOf(
  rollups: readonly Rollup[],
  { thresholdMs, objective }: NonNullable<AnnouncedController["slo"]>,
  managers: Activity["managers"],
): NonNullable<Activity["slo"]> {
  const [good, bad] = [sumOf(rollups, "slo.good"), sumOf(rollups, "slo.bad")];
  const causes = causesOf(rollups, "slo.bad");
  const total = good + bad;
  const budgetUsed = total === 0 ? 0 : bad / total / (1 - objective);
  const level = { thresholdMs, objective, good, bad, budgetUsed, causes };
  return { ...level, summary: describeLevel(level, describeShare(causes, managers)) };
}

function describeLevel(
  { thresholdMs, objective, good, bad }: Omit<NonNullable<Activity["slo"]>, "summary">,
  share: MainShare | undefined,
): string {
  const total = good + bad;
  const wanted = `${percentOf(objective)} within ${thresholdMs / 1_000} s`;
  if (total === 0) return `The objective is ${wanted}; there were no changes.`;
  const met = `${percentOf(good / total)} of ${total} changes met the objective of ${wanted}.`;
  if (share === undefined) return met;
  return `${met} The others spent ${share.percent} of their time on ${share.cause}.`;
}

interface MainShare {
  readonly percent: string;
  readonly cause: string;
}

function describeShare(causes: Causes, managers: Activity["managers"]): MainShare | undefined {
  const [main] = causes;
  if (main === undefined) return undefined;
  const [manager] = managers;
  const isRival = main.cause === "contention" && manager !== undefined;
  const rival = isRival ? ` with ${manager.manager}` : "";
  return { percent: `${Math.round(main.share * 100)} %`, cause: `${TEXTS[main.cause]}${rival}` };
}

function causesOf(rollups: readonly Rollup[], prefix: string): Causes {
  const parts = CONVERGENCE_CAUSES.map((cause) => ({
    cause,
    ms: sumOf(rollups, `${prefix}.${cause}`),
  })).filter(({ ms }) => ms > 0);
  const totalMs = parts.reduce((sum, { ms }) => sum + ms, 0);
  return parts
    .map(({ cause, ms }) => ({ cause, ms, share: ms / totalMs }))
    .toSorted((one, other) => other.ms - one.ms);
}

function sumOf(rollups: readonly Rollup[], counter: string): number {
  return rollups.reduce((sum, { counts }) => sum + (counts[counter] ?? 0), 0);
}

/** A missed objective must not look met, so the last digit is not rounded up. */
function percentOf(share: number): string {
  return `${Math.floor(share * 10_000 + 1e-6) / 100} %`;
}
