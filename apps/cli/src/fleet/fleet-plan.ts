import type { PlanRecord } from "@konverge/records";
import { changesOf } from "../text/patch-changes.ts";

type Action = Exclude<PlanRecord["changes"][number]["action"], "unchanged">;

/** The objects to plan. */
export interface FleetQuery {
  readonly cluster: string;
  readonly controller?: string;
  readonly namespace?: string;
}

/** The plan of one object, for the sum. */
export interface FleetEntry {
  readonly key: string;
  readonly complete: boolean;
  readonly error?: string;
  /** The changed objects by kind of change, such as `changed ConfigMap: data.size`. */
  readonly changes: readonly {
    readonly action: Action;
    readonly kind: string;
    readonly fields: readonly string[];
    readonly object: string;
  }[];
  /** Numbers of changed and of deleted objects, including those that the plan does not list. */
  readonly total: number;
  readonly deletes: number;
  /** Numbers of workflow runs that would start, and of calls of `ctx.external`. */
  readonly runs: number;
  readonly externals: number;
}

/** Equal changes of several objects. */
export interface ChangeGroup {
  readonly action: Action;
  readonly kind: string;
  readonly fields: readonly string[];
  count: number;
  readonly examples: string[];
}

const MOST_EXAMPLES = 5;
const MOST_FIELDS = 8;

/** The plans of many objects, as a sum. */
export class FleetPlan {
  readonly #groups = new Map<string, ChangeGroup>();
  readonly #incomplete: { readonly key: string; readonly reason: string }[] = [];
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

  static entryOf(key: string, plan: PlanRecord): FleetEntry {
    const { complete, error, gaps, summary } = plan;
    const deletes = summary.deleted + summary.replaced;
    const total = summary.created + summary.changed + deletes;
    const [gap] = gaps;
    const reason = error?.message ?? (gap === undefined ? "" : `${gap.about}: ${gap.reason}`);
    const changes = plan.changes.flatMap(({ action, kind, namespace, name, patch }) => {
      if (action === "unchanged") return [];
      const fields = action === "changed" ? changesOf(patch).map(({ path }) => path) : [];
      const object = namespace === undefined ? name : `${namespace}/${name}`;
      return [{ action, kind, fields: fields.toSorted(), object }];
    });
    return {
      key,
      complete,
      ...(complete ? {} : { error: reason }),
      changes,
      total,
      deletes,
      runs: plan.runs.length,
      externals: plan.externals.length,
    };
  }

  add({ key, complete, error = "", changes, total, deletes, runs, externals }: FleetEntry): void {
    this.planned += 1;
    this.changes += total;
    this.deletes += deletes;
    this.runs += runs;
    this.externals += externals;
    this.unlisted += total - changes.length;
    if (!complete) this.#incomplete.push({ key, reason: error });
    if (complete && total + runs === 0) this.unchanged += 1;
    for (const { action, kind, fields, object } of changes) {
      const shown = fields.slice(0, MOST_FIELDS);
      if (fields.length > shown.length) shown.push(`${fields.length - shown.length} more`);
      const id = JSON.stringify([action, kind, shown]);
      const group = this.#groups.get(id) ?? { action, kind, fields: shown, count: 0, examples: [] };
      group.count += 1;
      if (group.examples.length < MOST_EXAMPLES) group.examples.push(object);
      this.#groups.set(id, group);
    }
  }

  /** The most frequent first. */
  get groups(): readonly ChangeGroup[] {
    return [...this.#groups.values()].toSorted((one, other) => other.count - one.count);
  }

  get incomplete(): readonly { readonly key: string; readonly reason: string }[] {
    return this.#incomplete;
  }
}
