import type { GuardView } from "@konverge/contracts";
import { age } from "./age.ts";
import { columns, fields } from "./columns.ts";
import { plain } from "./plain-text.ts";
import { toneCell } from "./tone.ts";

type Transition = GuardView["transitions"][number];

const HEAD = ["CLUSTER", "BREAKER", "RATE", "LIMIT", "LIVE", "FAILING", "LAST TRANSITION"];

/** Formats guards, a line each. */
export function guardRows(guards: readonly GuardView[]): string {
  return columns([
    HEAD,
    ...guards.map(({ cluster, breaker, rate, workers, transitions: [last] }) => [
      cluster,
      toneCell(breaker.state),
      round(rate.current),
      round(rate.limits.ratePerSecond),
      String(workers.live.length),
      String(workers.failing.length),
      last === undefined
        ? "none"
        : transitionText(last, `${age(new Date(last.atMs).toISOString())} ago`),
    ]),
  ]);
}

/** Formats one guard in detail. */
export function guardDetails(view: GuardView): string {
  const { breaker, rate, workers, transitions } = view;
  const { isolated, openUntil, recent } = breaker;
  const { limits, override, pausedUntil } = rate;
  const rows: (readonly [string, string])[] = [
    ["cluster", view.cluster],
    ["breaker", `${breaker.state}, generation ${breaker.generation}`],
  ];
  if (openUntil !== undefined)
    rows.push(["open until", `${openUntil}, opening ${breaker.consecutiveOpenings}`]);
  if (isolated !== undefined) rows.push(["isolated", noteText(isolated)]);
  if (breaker.outage !== undefined) {
    const { since, lastError, recoveringSince } = breaker.outage;
    const state = recoveringSince === undefined ? "failing" : "recovering";
    const error = lastError === undefined ? "" : `, last error: ${lastError}`;
    rows.push(["outage", `${state}, since ${since}${error}`]);
  }
  rows.push(
    ["rate now", `${round(rate.current)} calls/s`],
    [
      "limits",
      `${round(limits.ratePerSecond)} calls/s, burst ${limits.burst}, minimum ${round(limits.minRatePerSecond)} calls/s; set by ${rate.setBy}`,
    ],
  );
  const { failures, calls, failedShare, openMs, maxOpenMs } = breaker.limits;
  const share = round(failedShare * 100);
  rows.push([
    "opens after",
    `${failures} failures in a row, or ${share} % of at least ${calls} calls; for ${openMs} to ${maxOpenMs} ms`,
  ]);
  if (override !== undefined) rows.push(["rate override", noteText(override)]);
  if (pausedUntil !== undefined) rows.push(["paused until", pausedUntil]);
  rows.push(
    [
      "last seconds",
      `${round(recent.calls)} calls, ${round(recent.failed)} failed, ${round(recent.slow)} slow, ${round(recent.throttled)} throttled (429), ${breaker.consecutiveFailures} consecutive failures`,
    ],
    ["live workers", workers.live.join(", ") || "none in the last 10 s"],
  );
  if (workers.failing.length > 0) rows.push(["failing", workers.failing.join(", ")]);
  rows.push(["transitions", transitions.length === 0 ? "none" : ""]);
  const history = transitions.map((transition) => `  ${plain(transitionText(transition))}`);
  return [fields(rows), ...history].join("\n");
}

function transitionText(
  { atMs, from, to, by, operatorReason, reason, worker, ...rest }: Transition,
  when: string = new Date(atMs).toISOString(),
): string {
  const what = `${when} ${from} -> ${to}`;
  if (by !== undefined) return `${what}, by ${by}: ${operatorReason ?? ""}`;
  const { calls, failed, slow, throttled, consecutive, failingWorkers, liveWorkers } = rest;
  const evidence =
    calls === undefined
      ? ""
      : ` (${calls} calls, ${failed} failed, ${slow} slow, ${throttled} throttled (429), ${consecutive} consecutive, ${failingWorkers} of ${liveWorkers} workers failing)`;
  const cause = reason === "probe" ? `probe ${to === "closed" ? "succeeded" : "failed"}` : reason;
  return `${what}, ${cause}${worker === undefined ? "" : ` reported by ${worker}`}${evidence}`;
}

function noteText({ by, reason, at }: { by: string; reason: string; at: string }): string {
  return `by ${by} at ${at}: ${reason}`;
}

function round(rate: number): string {
  return String(rate < 10 ? Number(rate.toPrecision(2)) : Math.round(rate));
}
