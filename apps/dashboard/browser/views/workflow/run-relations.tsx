import type { RunDetail } from "@konverge/contracts";
import { idOf } from "../../api/run-id.ts";
import { Status, type Tone } from "../../parts/status.tsx";
import { viewHref } from "../../state/cluster.ts";
import { objectHref, runHref } from "../../state/router.ts";

interface Child {
  readonly id: string;
  readonly step: string;
  readonly state: string;
  readonly tone: Tone;
}

/** The parent of a run, its children, and what started it. */
export function RunRelations({ run }: { readonly run: RunDetail }) {
  const { parent, by, id } = run;
  const children = childrenOf(run);
  const object = by === undefined ? undefined : startedBy(by, run.cluster);
  if (parent === undefined && children.length === 0 && object === undefined) return null;
  return (
    <section class="card" aria-label="Related runs">
      <h2>Related</h2>
      <ul class="tree">
        {object === undefined ? null : (
          <li>
            <span class="dim">started by</span> {object}
          </li>
        )}
        {parent === undefined ? null : (
          <li>
            <span class="dim">parent</span> <RunLink id={parent} />
          </li>
        )}
        <li class={parent === undefined ? undefined : "below"}>
          <span class="dim">{run.workflow}</span> <span class="strong">{idOf(id)}</span>
          <ul>
            {children.map(({ id: child, step, state, tone }) => (
              <li key={child} class="below">
                <span class="dim">{child.split("/")[0]}</span> <a href={runHref(child)}>{step}</a>{" "}
                <span class="small">
                  <Status tone={tone}>{state}</Status>
                </span>
              </li>
            ))}
          </ul>
        </li>
      </ul>
      {children.length === 0 ? null : (
        <p class="small">
          <a href={viewHref("/workflows", { parent: id, all: "true" })}>List the children</a>
        </p>
      )}
    </section>
  );
}

function RunLink({ id }: { readonly id: string }) {
  return (
    <>
      <span class="dim">{id.split("/")[0]}</span> <a href={runHref(id)}>{idOf(id)}</a>
    </>
  );
}

/** Recorded children have ended; those of open waits have not. */
function childrenOf({ steps, waits = [] }: RunDetail): Child[] {
  const ended = steps.flatMap(({ child, name, error }): Child[] => {
    if (child === undefined) return [];
    const tone: Tone = error === undefined ? "good" : error.code === "cancelled" ? "idle" : "bad";
    const state =
      error === undefined ? "done" : error.code === "cancelled" ? "cancelled" : "failed";
    return [{ id: child, step: name, state, tone }];
  });
  const open = waits.flatMap(({ child, step }): Child[] =>
    child === undefined ? [] : [{ id: child, step, state: "active", tone: "run" }],
  );
  return [...ended, ...open];
}

/** Returns a link to what started the run: `controller <name>/<object>` or `schedule <name>`. */
function startedBy(by: string, cluster: string) {
  const [kind, rest = ""] = splitAt(by, " ");
  if (kind === "schedule") {
    return (
      <a href={viewHref(`/schedules/${encodeURIComponent(cluster)}/${encodeURIComponent(rest)}`)}>
        {by}
      </a>
    );
  }
  if (kind !== "controller") return undefined;
  const [controller = "", namespace = "", name] = rest.split("/");
  const place = name === undefined ? ["_", namespace] : [namespace, name];
  const key = [controller, cluster, "", ...place].map(encodeURIComponent).join("/");
  return <a href={objectHref(key)}>{by}</a>;
}

function splitAt(text: string, mark: string): readonly [string, string?] {
  const at = text.indexOf(mark);
  return at === -1 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}
