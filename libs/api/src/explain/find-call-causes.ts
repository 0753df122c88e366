import { count } from "../views/problem-text.ts";
import type { Cause, ObjectFacts } from "./object-facts.ts";

/** Calls per second below which a limit delays even few attempts: ten seconds of waiting. */
const LONG_MS = 10_000;

/** Finds the API calls that wait for tokens of the guard, unless the API server is stopped altogether. */
export function findCallCauses(
  { guard, workers, nowMs }: ObjectFacts,
  found: readonly Cause[],
): Cause[] {
  if (guard === undefined || found.some(({ code }) => code.startsWith("api_server_"))) return [];
  const { rate, cluster } = guard;
  const waiting = workers
    .flatMap(({ load }) => Object.values(load?.calls.waiting ?? {}))
    .reduce((sum, each) => sum + each, 0);
  const pausedUntil = rate.pausedUntil;
  const isPaused = pausedUntil !== undefined && Date.parse(pausedUntil) > nowMs;
  const delayMs = (waiting / Math.max(rate.current, 1)) * 1_000;
  if (!isPaused && delayMs < LONG_MS) return [];
  const what = isPaused
    ? `No call is sent until ${pausedUntil}, as the API server has requested`
    : `${count(waiting, "API call")} wait for the rate limit of ${Math.round(rate.current)} calls per second`;
  return [
    {
      code: "calls_wait",
      level: "info",
      message: what,
      ...(rate.override === undefined
        ? {}
        : {
            action: `Remove the limit of ${rate.override.by} with \`konverge guard set-rate ${cluster} configured --reason WHY\``,
          }),
      page: "/guards",
      docs: "docs/outages.md",
      evidence: [{ kind: "guard", name: cluster, detail: `${waiting} calls waiting` }],
    },
  ];
}
