import type { AttemptRecord } from "@konverge/records";
import { formatMs } from "../../parts/format.ts";
import { Empty } from "../../parts/notice.tsx";
import { query, setQuery } from "../../state/router.ts";
import { conflictsOf, numberOf } from "./conflicts-of.ts";
import { flatten } from "./flatten.ts";

interface Row {
  readonly name: string;
  readonly from: string;
  readonly to: string;
}

/** Two attempts side by side. Differences are marked. */
export function CompareView({ attempts }: { readonly attempts: readonly AttemptRecord[] }) {
  if (attempts.length < 2) {
    return (
      <Empty title="Nothing to compare">
        <p>The object has fewer than two attempts.</p>
      </Empty>
    );
  }
  const chosen = (name: string, otherwise: number) => {
    const number = query.value.get(name);
    return attempts.find((each) => numberOf(each) === number) ?? attempts[otherwise];
  };
  const [from, to] = [chosen("from", 1), chosen("to", 0)];
  if (from === undefined || to === undefined) return null;
  const rows = rowsOf(from, to);
  const differing = rows.filter((row) => row.from !== row.to);
  return (
    <section aria-label="Comparison">
      <div class="compare-choices">
        <Choice name="from" label="Attempt" attempts={attempts} chosen={from} />
        <Choice name="to" label="compared with" attempts={attempts} chosen={to} />
        <p class="dim" role="status">
          {differing.length === 0
            ? "No differences"
            : `${differing.length} of ${rows.length} differ`}
        </p>
      </div>
      <div class="panel">
        <table class="compare">
          <caption class="hidden">Attempts side by side</caption>
          <thead>
            <tr>
              <th scope="col">Field</th>
              <th scope="col">Attempt {numberOf(from)}</th>
              <th scope="col">Attempt {numberOf(to)}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => {
              const look = row.from === row.to ? "same" : "differs";
              return (
                <tr key={row.name} class={look}>
                  <th scope="row">{row.name}</th>
                  <td class="removed">{row.from}</td>
                  <td class="set">{row.to}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Choice({
  name,
  label,
  attempts,
  chosen,
}: {
  readonly name: string;
  readonly label: string;
  readonly attempts: readonly AttemptRecord[];
  readonly chosen: AttemptRecord;
}) {
  return (
    <label>
      {label}
      <select
        value={numberOf(chosen)}
        onChange={({ currentTarget }) => setQuery({ [name]: currentTarget.value })}
      >
        {attempts.map((each) => (
          <option key={each.id} value={numberOf(each)}>
            {`${numberOf(each)} · ${each.startedAt.slice(11, 19)} UTC · ${each.outcome}`}
          </option>
        ))}
      </select>
    </label>
  );
}

function rowsOf(from: AttemptRecord, to: AttemptRecord): Row[] {
  const [one, other] = [fieldsOf(from), fieldsOf(to)];
  return [...new Set([...one.keys(), ...other.keys()])].map((name) => ({
    name,
    from: one.get(name) ?? "",
    to: other.get(name) ?? "",
  }));
}

function fieldsOf(record: AttemptRecord): ReadonlyMap<string, string> {
  const { outcome, error, cause, triggers, waits, calls, worker, versionBefore } = record;
  const fields: [string, string | undefined][] = [
    ["Outcome", outcome],
    ["Error", error === undefined ? undefined : `${error.code}: ${error.message}`],
    ["Cause", cause],
    [
      "Triggers",
      triggers
        .map(({ kind, by, reason }) => [kind, reason ?? by].filter(Boolean).join(" "))
        .join(", "),
    ],
    ["Generation", record.generation?.toString()],
    ["Version read", versionBefore],
    ["Duration", formatMs(record.durationMs)],
    ["Wait in the queue", formatMs(waits.queueMs)],
    ["Wait for tokens", formatMs(waits.rateLimitMs)],
    ["Wait for the object lane", formatMs(waits.laneMs)],
    ["Wait after conflicts", formatMs(waits.conflictMs)],
    ["API calls", String(calls.count)],
    ["Conflicts", String(conflictsOf(record))],
    ["Hints", record.hints?.map(({ code }) => code).join(", ")],
    ["Worker", worker],
  ];
  for (const { verb, resource, namespace, name, subresource, patch } of record.writes) {
    const place = [namespace, name].filter(Boolean).join("/");
    const target = `${verb} ${resource} ${place}${subresource === undefined ? "" : ` ${subresource}`}`;
    fields.push([target, "written"]);
    for (const { path, value } of flatten(patch ?? {})) {
      fields.push([`${place} ${path}`, value === null ? "removed" : JSON.stringify(value)]);
    }
  }
  return new Map(
    fields.flatMap(([name, text]) => (text === undefined || text === "" ? [] : [[name, text]])),
  );
}
