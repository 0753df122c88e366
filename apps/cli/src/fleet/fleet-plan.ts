import { shortName } from "@konverge/core";
import type { PlanRecord } from "@konverge/records";
import { changesOf } from "../text/patch-changes.ts";

type Action = Exclude<PlanRecord["changes"][number]["action"], "unchanged">;

/** The objects to plan. */
export interface FleetQuery {
  readonly cluster: string;
  readonly controller?: string;
  readonly namespace?: string;
  /** The file of the new code, if its plans are compared with those of the running code. */
  readonly config?: string;
}

/**
 * How new code differs from the running code. `added`: only new code makes the change; `dropped`: only running code makes it;
 * `altered`: both change the object in different ways.
 */
type Difference = "added" | "dropped" | "altered";

/** The changed object of a plan. */
export interface FleetChange {
  readonly action: Action;
  readonly kind: string;
  readonly fields: readonly string[];
  readonly object: string;
  /** Set if plans are compared. */
  readonly difference?: Difference;
  /** The different action of the running code. */
  readonly instead?: Action;
}

/** The plan of one object, for the sum. */
export interface FleetEntry {
  readonly key: string;
  readonly complete: boolean;
  readonly error?: string;
  /** The changed objects by kind of change, such as `changed ConfigMap: data.size`. */
  readonly changes: readonly FleetChange[];
  /** Numbers of changed and of deleted objects, including those that the plan does not list. */
  readonly total: number;
  readonly deletes: number;
  /** Numbers of workflow runs that would start, and of calls of `ctx.external`. */
  readonly runs: number;
  readonly externals: number;
  /** Differences between new and running code that are not about objects. */
  readonly notes?: readonly string[];
}

/** Equal changes of several objects. */
export interface ChangeGroup extends Omit<FleetChange, "object"> {
  count: number;
  readonly examples: string[];
}

/** Equal notes of several keys. */
export interface NoteGroup {
  readonly note: string;
  count: number;
  readonly examples: string[];
}

/** Controllers that do not run on both sides of a comparison, with their number of objects. */
export interface LoneController {
  readonly controller: string;
  objects: number;
}

const MOST_EXAMPLES = 5;
const MOST_FIELDS = 8;

/** The plans of many objects, as a sum. */
export class FleetPlan {
  readonly #groups = new Map<string, ChangeGroup>();
  readonly #notes = new Map<string, NoteGroup>();
  readonly #removed = new Map<string, LoneController>();
  readonly #incomplete: { readonly key: string; readonly reason: string }[] = [];
  /** True if the changes are differences between new and running code. */
  readonly isComparison: boolean;
  planned = 0;
  /** Objects whose attempts would change nothing and start no run. */
  unchanged = 0;
  /** Number of changed objects. */
  changes = 0;
  /** Number of deleted objects, including those that are created again. */
  deletes = 0;
  /** Changed objects that plans do not list. */
  unlisted = 0;
  /** Workflow runs that would start. */
  runs = 0;
  /** Calls of `ctx.external`, which plans do not make. */
  externals = 0;

  constructor({ isComparison = false }: { readonly isComparison?: boolean } = {}) {
    this.isComparison = isComparison;
  }

  static changeOf(
    change: PlanRecord["changes"][number] & { readonly action: Action },
  ): FleetChange {
    const { action, kind, namespace, name, patch } = change;
    const fields = action === "changed" ? changesOf(patch).map(({ path }) => path) : [];
    const object = shortName({ namespace, name });
    return { action, kind, fields: fields.toSorted(), object };
  }

  static entryOf(key: string, plan: PlanRecord): FleetEntry {
    const { complete, summary } = plan;
    const deletes = summary.deleted + summary.replaced;
    const total = summary.created + summary.changed + deletes;
    const changes = plan.changes.flatMap((change) =>
      isChange(change) ? [FleetPlan.changeOf(change)] : [],
    );
    return {
      key,
      complete,
      ...(complete ? {} : { error: reasonOf(plan) }),
      changes,
      total,
      deletes,
      runs: plan.runs.length,
      externals: plan.externals.length,
    };
  }

  add(entry: FleetEntry): void {
    const {
      key,
      complete,
      error = "",
      changes,
      total,
      deletes,
      runs,
      externals,
      notes = [],
    } = entry;
    this.planned += 1;
    this.changes += total;
    this.deletes += deletes;
    this.runs += runs;
    this.externals += externals;
    this.unlisted += total - changes.length;
    if (!complete) this.#incomplete.push({ key, reason: error });
    if (complete && total + runs + notes.length === 0) this.unchanged += 1;
    for (const { object, ...change } of changes) {
      const { action, kind, fields, ...compared } = change;
      const shown = fields.slice(0, MOST_FIELDS);
      if (fields.length > shown.length) shown.push(`${fields.length - shown.length} more`);
      count(this.#groups, object, { kind, action, fields: shown, ...compared });
    }
    for (const note of notes) count(this.#notes, key, { note });
  }

  /** Counts an object whose controller is not in the new code. */
  addRemoved(controller: string): void {
    const known = this.#removed.get(controller) ?? { controller, objects: 0 };
    known.objects += 1;
    this.#removed.set(controller, known);
  }

  /** Controllers of running code that are not in the new code. */
  get removed(): readonly LoneController[] {
    return [...this.#removed.values()];
  }

  /** The most frequent first. */
  get notes(): readonly NoteGroup[] {
    return sorted(this.#notes);
  }

  /** The most frequent first. */
  get groups(): readonly ChangeGroup[] {
    return sorted(this.#groups);
  }

  get incomplete(): readonly { readonly key: string; readonly reason: string }[] {
    return this.#incomplete;
  }
}

/** Returns the reason why a plan is incomplete. */
export function reasonOf({ error, gaps: [gap] }: PlanRecord): string {
  return error?.message ?? (gap === undefined ? "" : `${gap.about}: ${gap.reason}`);
}

type PlannedChange = PlanRecord["changes"][number];

/** True unless the object is missing, or would not change. */
export function isChange(
  change: PlannedChange | undefined,
): change is PlannedChange & { readonly action: Action } {
  return change !== undefined && change.action !== "unchanged";
}

/** Counts an entry in the group of its equals. */
function count<G extends { count: number; readonly examples: string[] }>(
  groups: Map<string, G>,
  example: string,
  equal: Omit<G, "count" | "examples">,
): void {
  const id = JSON.stringify(equal);
  const group = groups.get(id) ?? ({ ...equal, count: 0, examples: [] } as unknown as G);
  group.count += 1;
  // Plans end in any order; the first in alphabetical order are the same in every run.
  group.examples.push(example);
  group.examples.sort();
  group.examples.splice(MOST_EXAMPLES);
  groups.set(id, group);
}

/** The plans end in any order, so equally frequent groups are in the order of their identities. */
function sorted<G extends { readonly count: number }>(groups: ReadonlyMap<string, G>): G[] {
  return [...groups]
    .toSorted(([id, one], [other, { count: most }]) => most - one.count || (id < other ? -1 : 1))
    .map(([, group]) => group);
}
