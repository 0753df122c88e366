import type { GuardView } from "@konverge/contracts";
import { html } from "hono/html";
import type { Html } from "./page-layout.ts";

/** One line per guarded API server: may calls go, how many, who makes them, what happened last. */
export function guardTable(guards: readonly GuardView[]): Html {
  if (guards.length === 0) {
    return html`<p>No worker has guarded an API server yet.</p>`;
  }
  return html`<div class="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">Cluster</th>
            <th scope="col">Breaker</th>
            <th scope="col">Calls/s now</th>
            <th scope="col">Live workers</th>
            <th scope="col">Last transition (UTC)</th>
          </tr>
        </thead>
        <tbody>
          ${guards.map(guardRow)}
        </tbody>
      </table>
    </div>
    <p class="dim">A worker is live when it reported calls within the last 10 s.</p>`;
}

function guardRow({ cluster, breaker, rate, workers, transitions }: GuardView): Html {
  const [last] = transitions;
  const { override, pausedUntil } = rate;
  const failing = workers.failing.length;
  return html`<tr>
    <td>${cluster}</td>
    <td>
      <span class="outcome ${TONE[breaker.mode]}">${MARK[breaker.mode]}</span>${detailOf(breaker)}
    </td>
    <td>
      ${`${round(rate.current)} of ${round(rate.limits.ratePerSecond)}`}${
        override === undefined
          ? ""
          : html`<br /><span class="dim">set by ${override.by}: ${override.reason}</span>`
      }${
        pausedUntil === undefined
          ? ""
          : html`<br /><span class="race">… paused until ${clock(pausedUntil)}</span>`
      }
    </td>
    <td>
      ${workers.live.length}${failing === 0 ? "" : html`, <span class="bad">✗ ${failing} failing</span>`}
    </td>
    <td>${last === undefined ? html`<span class="dim">none</span>` : transitionOf(last)}</td>
  </tr>`;
}

function detailOf({ openUntil, isolated }: GuardView["breaker"]): Html | string {
  if (isolated !== undefined) {
    return html`<br /><span class="dim">by ${isolated.by}: ${isolated.reason}</span>`;
  }
  return openUntil === undefined
    ? ""
    : html`<br /><span class="dim">until ${clock(openUntil)}</span>`;
}

function transitionOf(transition: GuardView["transitions"][number]): Html {
  const { atMs, from, to, reason, by, why, worker } = transition;
  const iso = new Date(atMs).toISOString();
  return html`<time datetime="${iso}">${iso.slice(0, 19).replace("T", " ")}</time> ${WORD[from]} to
    ${WORD[to]}
    <span class="dim"
      >${by === undefined ? `${reason}, told by ${worker ?? "?"}` : `${by}: ${why ?? ""}`}</span
    >`;
}

type Mode = GuardView["breaker"]["mode"];
const WORD: Readonly<Record<Mode, string>> = {
  closed: "closed",
  open: "open",
  halfOpen: "half open",
  isolated: "isolated",
};
/** Never by colour alone. */
const MARK: Readonly<Record<Mode, string>> = {
  closed: "✓ closed",
  open: "✗ open",
  halfOpen: "… half open",
  isolated: "⏸ isolated",
};
const TONE: Readonly<Record<Mode, string>> = {
  closed: "good",
  open: "bad",
  halfOpen: "race",
  isolated: "bad",
};

function clock(iso: string): string {
  return iso.slice(11, 19);
}

function round(rate: number): string {
  return String(rate < 10 ? Number(rate.toPrecision(2)) : Math.round(rate));
}
