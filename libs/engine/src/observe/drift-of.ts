import { defined, isJsonObject, type JsonValue } from "@konverge/core";
import type { Drift, DriftChange } from "@konverge/queue";
import type { BuiltPlan } from "../plan/build-plan.ts";

/** Changes of an object that its entry lists. */
const MOST_CHANGES = 10;
const MOST_FIELDS = 8;
const MOST_MOVED = 5;
/** Longest path of a field, in characters. */
const MOST_PATH = 200;
/** Largest entry, in characters of JSON. */
const MOST_CHARACTERS = 4_000;

/** Returns the drift that a plan shows; undefined if it would change nothing. */
export function driftOf({ record, changes }: BuiltPlan): Drift | undefined {
  const drifted = changes.flatMap((change) => driftChange(change) ?? []);
  if (drifted.length === 0) return undefined;
  const { key, controller, summary, startedAt: at } = record;
  const drift = { key, controller, since: at, at, summary };
  const listed: DriftChange[] = [];
  let size = JSON.stringify(drift).length;
  for (const change of drifted.slice(0, MOST_CHANGES)) {
    size += JSON.stringify(change).length;
    if (size > MOST_CHARACTERS) break;
    listed.push(change);
  }
  const moreChanges = drifted.length - listed.length;
  return { ...drift, changes: listed, ...(moreChanges === 0 ? {} : { moreChanges }) };
}

function driftChange(change: BuiltPlan["changes"][number]): DriftChange | undefined {
  const { resource, kind, namespace, name, action, patch, fieldsTakenOver = [] } = change;
  if (action === "unchanged") return undefined;
  const paths = action === "changed" ? pathsOf(patch as JsonValue).toSorted() : [];
  const more = paths.length - MOST_FIELDS;
  const fields = paths.slice(0, MOST_FIELDS).map(shortened);
  return {
    resource,
    kind,
    ...defined({ namespace }),
    name,
    action,
    fields: more > 0 ? [...fields, `${more} more`] : fields,
    moved: fieldsTakenOver
      .slice(0, MOST_MOVED)
      .map((field) => ({ ...field, path: shortened(field.path) })),
  };
}

/** The paths of the leaves of a merge patch. */
function pathsOf(patch: JsonValue | undefined, above = ""): string[] {
  if (!isJsonObject(patch)) return [];
  return Object.entries(patch).flatMap(([name, value]) => {
    const path = above === "" ? name : `${above}.${name}`;
    const below = pathsOf(value, path);
    return below.length === 0 ? [path] : below;
  });
}

function shortened(path: string): string {
  return path.length > MOST_PATH ? `${path.slice(0, MOST_PATH)}…` : path;
}
