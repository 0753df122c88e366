import type { AttemptSummary, Contention, ContentionReport, Rollups } from "@konverge/contracts";
import {
  defined,
  formatKey,
  namespaceField,
  namespaceSegment,
  NO_NAMESPACE,
  parseKey,
  resourceId,
  type ObjectKey,
} from "@konverge/core";
import { contentionObject, type AttemptRow, type Rollup } from "@konverge/queue";
import { loopStateSchema, type LoopState } from "@konverge/records";
import { covers, type Caller } from "../access/caller.ts";
import { placeOf } from "../queues/place-of.ts";
import type { QueueAccess } from "../queues/queue-access.ts";

const HOURS_OF_LOOPS = 1;
const OUTCOME = "outcome.";

/** An object without its controller. */
export interface ObjectPlace {
  /** `plural.group`. */
  readonly resource: string;
  readonly namespace?: string;
  readonly name: string;
}

/** Reads the contention of a cluster, limited to the scope of the caller. */
export async function readContentionReport(
  access: QueueAccess,
  caller: Caller,
  { cluster, hours }: { readonly cluster: string; readonly hours: number },
): Promise<ContentionReport> {
  const history = await access.history(cluster);
  const { controllers, namespaces } = caller.scope;
  const [{ contendedObjects, ownershipFlips, loops }, competingManagers] = await Promise.all([
    history.contentionReport(hours),
    history.competingManagers(hours, namespaces),
  ]);
  const isVisible = await objectFilter(access, caller, cluster);
  const isCovered = (key: string) => covers(caller.scope, placeOf(key));
  return {
    contendedObjects: contendedObjects
      .map(({ object, conflicts }) => ({ ...objectOf(object), conflicts }))
      .filter(isVisible),
    ownershipFlips: ownershipFlips
      .map(({ object, ...flip }) => ({ ...objectOf(object), ...flip }))
      .filter(isVisible),
    loops: [...loops].flatMap(([key, text]) => {
      const state = isCovered(key) ? loopOf(text) : undefined;
      return state === undefined ? [] : [{ key, ...state }];
    }),
    competingManagers: competingManagers.filter(
      ({ controller }) => controllers?.includes(controller) ?? true,
    ),
  };
}

/** Reads the contention over the object of a key, and whether the key is throttled. */
export async function readContention(access: QueueAccess, key: ObjectKey): Promise<Contention> {
  const { namespace, name, cluster } = key;
  const where = { resource: resourceId(key), ...defined({ namespace }), name };
  const history = await access.history(cluster);
  const [competingWriters, { loops }] = await Promise.all([
    history.contention(contentionObject(where)),
    history.contentionReport(HOURS_OF_LOOPS),
  ]);
  const loop = loopOf(loops.get(formatKey(key)));
  return {
    ...where,
    competingWriters: competingWriters.map(({ firstMs, lastMs, ...writer }) => ({
      ...writer,
      firstAt: new Date(firstMs).toISOString(),
      lastAt: new Date(lastMs).toISOString(),
    })),
    ...defined({ loop }),
  };
}

export function rollupOf({ atMs, counts }: Rollup): Rollups["items"][number] {
  const outcomes = Object.entries(counts)
    .filter(([name]) => name.startsWith(OUTCOME))
    .map(([name, count]): [string, number] => [name.slice(OUTCOME.length), count]);
  const { conflicts = 0, writes = 0, calls = 0, ms = 0 } = counts;
  return {
    at: new Date(atMs).toISOString(),
    attempts: outcomes.reduce((sum, [, count]) => sum + count, 0),
    outcomes: Object.fromEntries(outcomes),
    conflicts,
    writes,
    calls,
    ms,
  };
}

/** Returns a filter for objects, which have no controller: visible are the kinds of the caller's controllers. */
export async function objectFilter(
  access: QueueAccess,
  { scope }: Caller,
  cluster: string,
): Promise<(object: { readonly resource: string; readonly namespace?: string }) => boolean> {
  const { controllers } = scope;
  const known = controllers === undefined ? [] : await access.controllers(cluster);
  const resources = new Set(
    known.filter(({ name }) => controllers?.includes(name) === true).map(resourceId),
  );
  return ({ resource, namespace }) =>
    (controllers === undefined || resources.has(resource)) &&
    (scope.namespaces?.includes(namespaceSegment(namespace)) ?? true);
}

/** Resolves a kind by the controllers of the cluster. Any other text is a plural name already. */
export async function resourceOf(
  access: QueueAccess,
  cluster: string,
  kind: string,
): Promise<string> {
  const wanted = kind.toLowerCase();
  const known = await access.controllers(cluster);
  const found = known.find((controller) => controller.kind.toLowerCase() === wanted);
  return found?.resource ?? wanted;
}

export function summaryOf(row: AttemptRow): AttemptSummary {
  const { key, epoch, errorCode, startedAtMs, managers, hints, ...rest } = row;
  const object = parseKey(key);
  const { controller, namespace, name } = object;
  return {
    ...rest,
    id: `${key}#${epoch}`,
    key,
    controller,
    resource: resourceId(object),
    ...defined({ namespace }),
    name,
    ...(errorCode === "" ? {} : { errorCode }),
    managers: [...managers],
    hints: [...hints],
    startedAt: new Date(startedAtMs).toISOString(),
  };
}

/** The inverse of `contentionObject`. */
export function objectOf(object: string): ObjectPlace {
  const [resource = "", namespace = NO_NAMESPACE, name = ""] = object
    .split("/")
    .map(decodeURIComponent);
  return { resource, ...namespaceField(namespace), name };
}

/** Parses a stored loop state. Undefined for the format of another version. */
export function loopOf(text: string | undefined): LoopState | undefined {
  return text === undefined ? undefined : loopStateSchema.safeParse(JSON.parse(text)).data;
}
