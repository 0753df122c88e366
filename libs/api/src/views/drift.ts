import type { Drift as DriftView, DriftDetail, DriftList, DriftQuery } from "@konverge/contracts";
import {
  defined,
  formatKey,
  KonvergeError,
  namespaceSegment,
  parseKey,
  type ObjectKey,
} from "@konverge/core";
import type { Drift } from "@konverge/queue";
import { planRecordSchema } from "@konverge/records";
import { covers, demandSome, touches, type Caller } from "../access/caller.ts";
import type { QueueAccess } from "../queues/queue-access.ts";

/** Objects in one response. */
const MOST_LISTED = 1_000;
const MOST_GROUPS = 200;
const MOST_EXAMPLES = 5;

export async function listDrift(
  access: QueueAccess,
  { cluster, controller, namespace }: DriftQuery,
  caller: Caller,
): Promise<DriftList> {
  demandSome(caller, { cluster, controller, namespace });
  const observing = (await access.controllers(cluster))
    .filter(({ name, observes }) => observes === true && (controller ?? name) === name)
    .map(({ name }) => name)
    .filter((name) => touches(caller.scope, { cluster, controller: name, namespace }));
  const store = access.drifts(cluster);
  const found = await Promise.all(observing.map((name) => store.list(name)));
  const views = found
    .flat()
    .map(viewOf)
    .filter((view) => {
      const place = { ...view, namespace: namespaceSegment(view.namespace) };
      return (namespace ?? place.namespace) === place.namespace && covers(caller.scope, place);
    })
    .toSorted((one, other) => (orderOf(one) < orderOf(other) ? -1 : 1));
  return {
    controllers: observing,
    objects: views.length,
    groups: groupsOf(views),
    items: views.slice(0, MOST_LISTED),
  };
}

/** @throws KonvergeError `not_found` */
export async function readDrift(access: QueueAccess, key: ObjectKey): Promise<DriftDetail> {
  const text = formatKey(key);
  const store = access.drifts(key.cluster);
  const [drift, record] = await Promise.all([store.read(text), store.readPlan(text)]);
  if (drift === undefined) {
    throw new KonvergeError(
      "not_found",
      `${text} has no drift, or its controller does not have mode "observe"`,
    );
  }
  const plan = record === undefined ? undefined : planRecordSchema.safeParse(JSON.parse(record));
  return { ...viewOf(drift), ...defined({ plan: plan?.data }) };
}

/** Oldest first, then by key, so that the order does not change. */
function orderOf({ since, key }: DriftView): string {
  return `${since} ${key}`;
}

type Group = DriftList["groups"][number];

/** Equal changes of equal managers, the most frequent first. */
function groupsOf(views: readonly DriftView[]): Group[] {
  const groups = new Map<string, Group>();
  for (const { key, controller, since, changes } of views) {
    for (const { kind, action, fields, moved } of changes) {
      const managers = [...new Set(moved.map(({ manager }) => manager))].toSorted();
      const id = JSON.stringify([controller, kind, action, fields, managers]);
      const known = groups.get(id);
      if (known === undefined) {
        const first = { controller, kind, action, fields, managers, since };
        groups.set(id, { ...first, count: 1, examples: [key] });
        continue;
      }
      known.count += 1;
      const isNew = !known.examples.includes(key);
      if (isNew && known.examples.length < MOST_EXAMPLES) known.examples.push(key);
    }
  }
  return [...groups.values()]
    .toSorted((one, other) => other.count - one.count)
    .slice(0, MOST_GROUPS);
}

function viewOf({ key, controller, since, at, summary, changes, moreChanges }: Drift): DriftView {
  const { cluster, namespace, name } = parseKey(key);
  return {
    key,
    cluster,
    controller,
    name,
    since,
    at,
    summary: summary as DriftView["summary"],
    changes: changes.map(({ fields, moved, ...change }) => ({
      ...change,
      fields: [...fields],
      moved: [...moved],
    })),
    ...defined({ namespace, moreChanges }),
  };
}
