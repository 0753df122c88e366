import {
  attemptPageSchema,
  attemptQuerySchema,
  contentionQuerySchema,
  contentionReportSchema,
  rollupsQuerySchema,
  rollupsSchema,
  type AttemptPage,
  type AttemptSummary,
  type Contention,
  type ContentionReport,
  type Rollups,
} from "@konverge/contracts";
import { loopStateSchema, type LoopState } from "@konverge/records";
import {
  defined,
  formatKey,
  namespaceField,
  NO_NAMESPACE,
  parseKey,
  type ObjectKey,
} from "@konverge/core";
import { contentionObject, type AttemptRow, type Rollup } from "@konverge/queue";
import { covers, demandSome, type Caller } from "../access/caller.ts";
import { placeOf } from "../queues/place-of.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { route, type Route } from "../http/route.ts";

const HOURS_OF_LOOPS = 1;
const OUTCOME = "outcome.";
const MOST_CONTESTED = 1_000;
const HOUR_MS = 3_600_000;

/** Attempts, fights and counts of a cluster. */
export function historyRoutes(access: QueueAccess): Route[] {
  return [
    route({
      id: "listAttempts",
      method: "get",
      path: "/v1/attempts",
      summary: "The attempts of a cluster, newest first, by what they can be found by",
      role: "viewer",
      query: attemptQuerySchema,
      answer: attemptPageSchema,
      problems: ["not_found"],
      async handle({ query, caller }): Promise<AttemptPage> {
        const { cluster, kind, error, ...rest } = query;
        demandSome(caller, query);
        const page = await (
          await access.history(cluster)
        ).search({
          ...rest,
          errorCode: error,
          resource: kind === undefined ? undefined : await resourceOf(access, cluster, kind),
        });
        const seen = page.items.filter(({ key }) => covers(caller.scope, placeOf(key)));
        return {
          items: seen.map(summaryOf),
          ...defined({ next: page.next }),
        };
      },
    }),
    route({
      id: "getContentionReport",
      method: "get",
      path: "/v1/contention",
      summary: "Who fights over what, and which keys are slowed down for it",
      role: "viewer",
      query: contentionQuerySchema,
      answer: contentionReportSchema,
      problems: ["not_found"],
      async handle({ query: { cluster, hours }, caller }): Promise<ContentionReport> {
        demandSome(caller, { cluster });
        const history = await access.history(cluster);
        const [{ contendedObjects, ownershipFlips, loops }, contested] = await Promise.all([
          history.contentionReport(hours),
          history.search({ limit: MOST_CONTESTED, contested: true }),
        ]);
        const isSeen = await objectFilter(access, caller, cluster);
        return {
          contendedObjects: contendedObjects
            .map(({ object, conflicts }) => ({ ...objectOf(object), conflicts }))
            .filter(isSeen),
          ownershipFlips: ownershipFlips
            .map(({ object, ...flip }) => ({ ...objectOf(object), ...flip }))
            .filter(isSeen),
          loops: [...loops].flatMap(([key, text]) => {
            const state = covers(caller.scope, placeOf(key)) ? loopOf(text) : undefined;
            return state === undefined ? [] : [{ key, ...state }];
          }),
          competingManagers: rivalsOf(
            contested.items.filter(
              ({ key, startedAtMs }) =>
                covers(caller.scope, placeOf(key)) && startedAtMs >= Date.now() - hours * HOUR_MS,
            ),
          ),
        };
      },
    }),
    route({
      id: "listRollups",
      method: "get",
      path: "/v1/rollups",
      summary: "What a controller did, per minute",
      role: "viewer",
      query: rollupsQuerySchema,
      answer: rollupsSchema,
      problems: ["unknown_controller"],
      async handle({ query: { cluster, controller, minutes }, caller }): Promise<Rollups> {
        demandSome(caller, { cluster, controller });
        // Unknown controllers are told as such, and not as idle ones.
        await access.find(cluster, controller);
        const items = await (await access.history(cluster)).rollups(controller, minutes);
        return { items: items.map(rollupOf) };
      },
    }),
  ];
}

/** Pairs of a controller and a manager that won against it, by how many attempts lost, most first. */
function rivalsOf(rows: readonly AttemptRow[]): ContentionReport["competingManagers"] {
  const sums = new Map<string, ContentionReport["competingManagers"][number]>();
  for (const { key, managers } of rows) {
    const { controller } = parseKey(key);
    for (const manager of managers) {
      const pair = JSON.stringify([controller, manager]);
      const { attempts } = sums.get(pair) ?? { attempts: 0 };
      sums.set(pair, { controller, manager, attempts: attempts + 1 });
    }
  }
  return [...sums.values()].toSorted((one, other) => other.attempts - one.attempts);
}

function rollupOf({ atMs, counts }: Rollup): Rollups["items"][number] {
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

/** Objects are not of a controller: those of a kind that one of the caller's controllers reconciles are shown. */
export async function objectFilter(
  access: QueueAccess,
  { scope }: Caller,
  cluster: string,
): Promise<(object: { readonly resource: string; readonly namespace?: string }) => boolean> {
  const { controllers } = scope;
  const known = controllers === undefined ? [] : await access.controllers(cluster);
  const resources = new Set(
    known
      .filter(({ name }) => controllers?.includes(name) === true)
      .map(({ resource, group }) => (group === "" ? resource : `${resource}.${group}`)),
  );
  return ({ resource, namespace = NO_NAMESPACE }) =>
    (controllers === undefined || resources.has(resource)) &&
    (scope.namespaces?.includes(namespace) ?? true);
}

/** Who fights over the object of a key, and whether the key is slowed down. */
export async function readContention(access: QueueAccess, key: ObjectKey): Promise<Contention> {
  const { resource, group, namespace, name, cluster } = key;
  const type = group === "" ? resource : `${resource}.${group}`;
  const where = { resource: type, ...defined({ namespace }), name };
  const history = await access.history(cluster);
  const [contenders, { loops }] = await Promise.all([
    history.contention(contentionObject(where)),
    history.contentionReport(HOURS_OF_LOOPS),
  ]);
  const loop = loopOf(loops.get(formatKey(key)));
  return {
    ...where,
    competingWriters: contenders.map(({ firstMs, lastMs, ...contender }) => ({
      ...contender,
      firstAt: new Date(firstMs).toISOString(),
      lastAt: new Date(lastMs).toISOString(),
    })),
    ...defined({ loop }),
  };
}

/** By the names that the controllers of the cluster gave their kinds; anything else is a plural already. */
async function resourceOf(access: QueueAccess, cluster: string, kind: string): Promise<string> {
  const wanted = kind.toLowerCase();
  const known = await access.controllers(cluster);
  const found = known.find((controller) => controller.kind.toLowerCase() === wanted);
  return found?.resource ?? wanted;
}

export function summaryOf(row: AttemptRow): AttemptSummary {
  const { key, epoch, errorCode, startedAtMs, managers, hints, ...rest } = row;
  const { controller, resource, group, namespace, name } = parseKey(key);
  return {
    ...rest,
    id: `${key}#${epoch}`,
    key,
    controller,
    resource: group === "" ? resource : `${resource}.${group}`,
    ...defined({ namespace }),
    name,
    ...(errorCode === "" ? {} : { errorCode }),
    managers: [...managers],
    hints: [...hints],
    startedAt: new Date(startedAtMs).toISOString(),
  };
}

export function objectOf(object: string): { resource: string; namespace?: string; name: string } {
  const [resource = "", namespace = NO_NAMESPACE, name = ""] = object
    .split("/")
    .map(decodeURIComponent);
  return { resource, ...namespaceField(namespace), name };
}

/** What another version stored is left out. */
function loopOf(text: string | undefined): LoopState | undefined {
  if (text === undefined) return undefined;
  const parsed = loopStateSchema.safeParse(JSON.parse(text));
  return parsed.success ? parsed.data : undefined;
}
