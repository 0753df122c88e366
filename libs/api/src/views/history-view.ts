import type { AttemptSummary, Contention, ContentionReport, Rollups } from "@konverge/contracts";
import {
  defined,
  formatKey,
  namespaceSegment,
  parseKey,
  resourceId,
  type ObjectKey,
} from "@konverge/core";
import {
  contentionObject,
  type AnnouncedController,
  type AttemptRow,
  type HistoryReader,
  type Rollup,
} from "@konverge/queue";
import { loopStateSchema, type LoopState } from "@konverge/records";
import { covers, type Caller } from "../access/caller.ts";
import { objectOf, type ObjectPlace } from "./object-place.ts";
import { readEpisodes } from "./contention-episodes.ts";
import { placeOf } from "../queues/place-of.ts";
import type { QueueAccess } from "../queues/queue-access.ts";

const OUTCOME = "outcome.";

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
  const states = loopsOf(loops, caller);
  const { episodes, more } = await readVisibleEpisodes(history, {
    caller,
    loops: states,
    isSeen: isVisible,
    known: await access.controllers(cluster),
  });
  return {
    episodes,
    moreEpisodes: more,
    contendedObjects: contendedObjects
      .map(({ object, conflicts }) => ({ ...objectOf(object), conflicts }))
      .filter(isVisible),
    ownershipFlips: ownershipFlips
      .map(({ object, ...flip }) => ({ ...objectOf(object), ...flip }))
      .filter(isVisible),
    loops: [...states].map(([key, state]) => ({ key, ...state })),
    competingManagers: competingManagers.filter(
      ({ controller }) => controllers?.includes(controller) ?? true,
    ),
  };
}

/** Parses the loop states in the scope of the caller. */
export function loopsOf(
  stored: ReadonlyMap<string, string>,
  { scope }: Caller,
): Map<string, LoopState> {
  return new Map(
    [...stored].flatMap(([key, text]) => {
      const state = covers(scope, placeOf(key)) ? loopOf(key, text) : undefined;
      return state === undefined ? [] : [[key, state] as const];
    }),
  );
}

/** Reads the contention of the last hour in the scope of the caller. */
export async function readVisibleEpisodes(
  history: HistoryReader,
  options: {
    readonly caller: Caller;
    readonly loops: ReadonlyMap<string, LoopState>;
    readonly isSeen: (object: ObjectPlace) => boolean;
    readonly known: readonly AnnouncedController[];
  },
): Promise<Awaited<ReturnType<typeof readEpisodes>>> {
  const { caller, loops, isSeen, known } = options;
  const { controllers } = caller.scope;
  return await readEpisodes({
    history,
    loops,
    isVisible: (object, controller) =>
      isSeen(object) && (controllers?.includes(controller) ?? true),
    placeOf: objectOf,
    keyOf: ({ resource, ...object }, name) => {
      const found = known.filter(
        (each) => resourceId(each) === resource && (controllers?.includes(each.name) ?? true),
      );
      const controller = found.find((each) => each.name === name) ?? found[0];
      if (controller === undefined) return undefined;
      const { cluster, group } = controller;
      const kind = { cluster, group, resource: controller.resource };
      return formatKey({ controller: controller.name, ...kind, ...object });
    },
  });
}

/** Reads the contention over the object of a key, and whether the key is throttled. */
export async function readContention(access: QueueAccess, key: ObjectKey): Promise<Contention> {
  const { namespace, name, cluster } = key;
  const where = { resource: resourceId(key), ...defined({ namespace }), name };
  const history = await access.history(cluster);
  const [competingWriters, loops] = await Promise.all([
    history.contention(contentionObject(where)),
    history.loops(),
  ]);
  const loop = loopOf(formatKey(key), loops.get(formatKey(key)));
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

/** Parses the stored loop state of a key. Undefined for the format of another version. */
function loopOf(key: string, text: string | undefined): LoopState | undefined {
  const state = text === undefined ? undefined : loopStateSchema.safeParse(JSON.parse(text)).data;
  if (state === undefined) return undefined;
  // Fields of other kinds keep the name of their kind.
  const own = `${resourceId(parseKey(key))} `;
  const fieldOf = (path: string) => (path.startsWith(own) ? path.slice(own.length) : path);
  return { ...state, paths: state.paths.map(fieldOf) };
}
