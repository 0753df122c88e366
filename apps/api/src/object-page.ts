import {
  HINTS,
  type AttemptRecord,
  type Contention,
  type ObjectHistory,
} from "@konverge/contracts";
import { html } from "hono/html";
import { layout, type Html } from "./page-layout.ts";

type Write = AttemptRecord["writes"][number];
type Conflict = Write["conflicts"][number];

/** What happened to one object, newest first: why each attempt ran, what it wrote, who won against it. */
export function renderObjectPage(history: ObjectHistory, contention: Contention): Html {
  const [controller = "", cluster = "", type = "", namespace = "", name = ""] =
    history.key.split("/");
  return layout(
    `${type} ${name}`,
    html`<h1>
        ${decodeURIComponent(type)}
        ${namespace === "_" ? "" : `${decodeURIComponent(namespace)}/`}${decodeURIComponent(name)}
      </h1>
      <dl>
        <dt>Controller</dt>
        <dd>${controller} on cluster ${cluster}</dd>
        <dt>State</dt>
        <dd>
          ${history.phase}${history.nextAt === undefined ? "" : html`, next at ${time(history.nextAt)}`}
        </dd>
        ${history.paused === undefined ? "" : pauseRow(history.paused)}
        ${history.dead === undefined ? "" : deathRow(history.dead)}
        <dt>In a row</dt>
        <dd>${history.failures} failures, ${history.conflicts} conflicts</dd>
      </dl>
      ${hintSection(history)} ${fightSection(contention)}
      <h2>Attempts</h2>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">Began (UTC)</th>
              <th scope="col">Outcome</th>
              <th scope="col">Why</th>
              <th scope="col">What it did</th>
              <th scope="col">Took</th>
              <th scope="col">Waited</th>
            </tr>
          </thead>
          <tbody>
            ${history.attempts.map(attemptRow)}
          </tbody>
        </table>
      </div>
      ${history.attempts.length === 0 ? html`<p class="dim">No attempt has ended yet.</p>` : ""}`,
  );
}

/** What the attempts that are shown did wrong, each once. */
function hintSection({ attempts }: ObjectHistory): Html | string {
  const hints = new Map(
    attempts.flatMap(({ hints: given = [] }) => given).map((hint) => [hint.code, hint]),
  );
  if (hints.size === 0) return "";
  return html`<h2>Hints</h2>
    <ul>
      ${[...hints.values()].map(
        ({ code, message }) =>
          html`<li class="bad">
            ${message} <span class="dim">${code in HINTS ? `docs/hints.md#${code}` : ""}</span>
          </li>`,
      )}
    </ul>`;
}

function fightSection({ contenders, loop }: Contention): Html | string {
  if (contenders.length === 0 && loop === undefined) return "";
  return html`<h2>Fights</h2>
    ${
      loop === undefined
        ? ""
        : html`<p class="race">
            Runs in circles since ${time(new Date(loop.sinceMs).toISOString())}; its starts are
            slowed down, the next is at ${time(new Date(loop.untilMs).toISOString())} unless a
            person asks.
          </p>`
    }
    <ul>
      ${contenders.map(
        ({ kind, manager, path, count, lastAt }) =>
          html`<li>
            ${kind === "taken" ? `we took ${path} from ${manager}` : `${manager} won${path === "" ? "" : ` with ${path}`}`},
            ${count} times, last at ${time(lastAt)}
          </li>`,
      )}
    </ul>`;
}

function pauseRow({ scope, by, reason, since }: NonNullable<ObjectHistory["paused"]>): Html {
  const what =
    scope.kind === "namespace"
      ? `the namespace ${scope.namespace}`
      : scope.kind === "key"
        ? "this object"
        : "the whole controller";
  return html`<dt>Paused</dt>
    <dd><span class="race">⏸ ${what}</span> by ${by} since ${time(since)}: ${reason}</dd>`;
}

function deathRow({ since, error }: NonNullable<ObjectHistory["dead"]>): Html {
  const cause = error === undefined ? "" : `: ${error.code}: ${error.message}`;
  return html`<dt>Dead letter</dt>
    <dd>
      <span class="bad">✗ since</span> ${time(since)}${cause}
      <span class="dim">until the generation changes or a person asks</span>
    </dd>`;
}

function attemptRow(record: AttemptRecord): Html {
  const { waits } = record;
  return html`<tr>
    <td>
      ${time(record.startedAt)}<br /><span class="dim"
        >attempt ${record.attempt}, ${record.worker}</span
      >
    </td>
    <td class="outcome ${tone(record)}">${mark(record)} ${record.outcome}</td>
    <td>
      ${record.triggers.map(
        ({ kind, by, reason }) =>
          html`<div>${kind}<span class="dim"> ${reason ?? by ?? ""}</span></div>`,
      )}
    </td>
    <td>
      ${record.error === undefined ? "" : html`<div class="bad">${record.error.code}: ${record.error.message}</div>`}
      <ul>
        ${record.writes.map(writeItem)}
        ${record.conflicts.map((conflict) => conflictItem(conflict))}
      </ul>
      <span class="dim"
        >${record.calls.n} API
        calls${
          record.versionBefore === undefined ? "" : `, version ${record.versionBefore}`
        }${record.versionAfter === record.versionBefore || record.versionAfter === undefined ? "" : ` to ${record.versionAfter}`}</span
      >
    </td>
    <td>${record.durationMs} ms</td>
    <td class="dim">
      queue ${waits.queueMs}
      ms${waits.limiterMs > 0 ? html`<br />limiter ${waits.limiterMs} ms` : ""}${
        waits.laneMs > 0 ? html`<br />lane ${waits.laneMs} ms` : ""
      }${waits.conflictMs > 0 ? html`<br />conflicts ${waits.conflictMs} ms` : ""}
    </td>
  </tr>`;
}

function writeItem(write: Write): Html {
  const { verb, resource, name, subresource, patch, conflicts, toVersion } = write;
  return html`<li>
    ${verb} ${resource}
    ${name}${subresource === undefined ? "" : ` (${subresource})`}${
      toVersion === undefined ? "" : html` <span class="dim">as ${toVersion}</span>`
    }
    ${patch === undefined ? "" : html`<br /><code>${JSON.stringify(patch)}</code>`}
    ${
      conflicts.length === 0
        ? ""
        : html`<ul>
            ${conflicts.map(conflictItem)}
          </ul>`
    }
  </li>`;
}

function conflictItem({ readVersion, foundVersion, winners, waitedMs }: Conflict): Html {
  const who = winners
    .map(({ manager, paths }) => `${manager} (${paths.slice(0, 3).join(", ")})`)
    .join("; ");
  return html`<li class="race">
    conflict: had read ${readVersion}${foundVersion === undefined ? "" : `, found ${foundVersion}`};
    ${who === "" ? "the winner is not known" : `${who} won`}; waited ${waitedMs} ms
  </li>`;
}

function time(iso: string): Html {
  return html`<time datetime="${iso}">${iso.slice(0, 23).replace("T", " ")}</time>`;
}

/** Never by colour alone. */
function mark({ outcome }: AttemptRecord): string {
  switch (outcome) {
    case "done":
    case "requeueAfter":
    case "awaitChange":
    case "gone":
      return "✓";
    case "conflict":
      return "⇄";
    case "deferred":
    case "cancelled":
      return "…";
    case "retry":
    case "rejected":
    case "terminal":
    case "lost":
      return "✗";
  }
}

function tone(record: AttemptRecord): string {
  const symbol = mark(record);
  if (symbol === "✓") return "good";
  return symbol === "⇄" ? "race" : symbol === "✗" ? "bad" : "dim";
}
