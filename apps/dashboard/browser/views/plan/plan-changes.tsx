import { shortName } from "@konverge/core";
import type { PlanRecord } from "@konverge/records";
import type { ComponentChildren } from "preact";
import { plural } from "../../parts/format.ts";
import { Status, type Tone } from "../../parts/status.tsx";
import { flatten } from "../object/flatten.ts";

type Change = PlanRecord["changes"][number];

const TONES: Readonly<Record<Change["action"], Tone>> = {
  created: "good",
  changed: "run",
  deleted: "bad",
  replaced: "warn",
  unchanged: "idle",
};

/** Describes the numbers of a plan, for example `1 deleted, 2 changed`. */
export function summaryText(summary: PlanRecord["summary"]): string {
  const parts = Object.entries(summary)
    .filter(([action, count]) => count > 0 && action !== "unchanged")
    .map(([action, count]) => `${count} ${action}`);
  return parts.length === 0 ? "no changes" : parts.join(", ");
}

/** The changes of a plan by object, and its other effects. */
export function PlanChanges({ plan }: { readonly plan: PlanRecord }) {
  const changed = plan.changes.filter(({ action }) => action !== "unchanged");
  const { moreChanges = 0, moreNotes = 0 } = plan;
  const { unchanged } = plan.summary;
  return (
    <div class="effects">
      {changed.map((change) => (
        <ChangeCard
          key={`${change.cluster} ${change.resource} ${change.namespace} ${change.name}`}
          change={change}
        />
      ))}
      {changed.length === 0 ? <p>No changes</p> : null}
      {moreChanges === 0 ? null : <p class="dim">and {plural(moreChanges, "more object")}</p>}
      {unchanged === 0 ? null : (
        <p class="dim">{plural(unchanged, "object")} written without a change</p>
      )}
      <Notes title="Events">
        {plan.events.map(({ type, reason, kind, namespace, name, message }) => (
          <li key={`${kind}${namespace}${name}${reason}${message}`}>
            {type} {reason} on {kind} {shortName({ namespace, name })}: {message}
          </li>
        ))}
      </Notes>
      <Notes title="External calls">
        {plan.externals.map((name) => (
          <li key={name}>{name}</li>
        ))}
      </Notes>
      <Notes title="Workflow runs">
        {plan.runs.map(({ workflow, id }) => (
          <li key={`${workflow}/${id}`}>{id === undefined ? workflow : `${workflow}/${id}`}</li>
        ))}
      </Notes>
      <Notes title="What the plan cannot determine">
        {plan.gaps.map(({ about, reason }) => (
          <li key={`${about}${reason}`}>
            <span class="strong">{about}</span>: {reason}
          </li>
        ))}
      </Notes>
      {moreNotes === 0 ? null : <p class="dim">and {plural(moreNotes, "more note")}</p>}
    </div>
  );
}

function Notes({
  title,
  children,
}: {
  readonly title: string;
  readonly children: readonly ComponentChildren[];
}) {
  if (children.length === 0) return null;
  return (
    <section>
      <h2>{title}</h2>
      <ul class="plan-notes">{children}</ul>
    </section>
  );
}

/** One object: its changed fields, with the managers that lose them. */
function ChangeCard({ change }: { readonly change: Change }) {
  const { action, resource, cluster, terminating = false, patch, fieldsTakenOver = [] } = change;
  const title = `${resource} ${shortName(change)}`;
  const fields = patch === undefined ? [] : flatten(patch);
  const managers = [...new Set(change.writes.map(({ fieldManager }) => fieldManager))].flatMap(
    (manager) => manager ?? [],
  );
  return (
    <article class="write">
      <header>
        <Status tone={TONES[action]}>{action}</Status> <span class="strong">{title}</span>
        {cluster === undefined ? null : <span class="dim"> in cluster {cluster}</span>}
        {terminating ? <span class="dim"> waits for its finalizers</span> : null}
        <span class="versions">{managers.join(", ")}</span>
      </header>
      {fields.length === 0 ? null : (
        <table class="diff" aria-label={`Changed fields of ${title}`}>
          <tbody>
            {fields.map(({ path, value }) => {
              const from = fieldsTakenOver.find((field) => isPartOf(field.path, path));
              return (
                <tr key={path}>
                  <th scope="row">
                    <code>{path}</code>
                    {from === undefined ? null : (
                      <div class="race small">taken over from {from.manager}</div>
                    )}
                  </th>
                  <td class={value === null ? "removed" : "set"}>
                    <code>{value === null ? "removed" : JSON.stringify(value)}</code>
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
    </article>
  );
}

/** True if the path of an owned field is the path of a patch, or is below it. */
function isPartOf(owned: string, path: string): boolean {
  return owned === path || owned.startsWith(`${path}.`) || owned.startsWith(`${path}[`);
}
