import {
  attemptQuerySchema,
  fightsQuerySchema,
  loopStateSchema,
  rollupsQuerySchema,
  type AttemptPage,
  type AttemptSummary,
  type Contention,
  type Fights,
  type LoopState,
  type Rollups,
} from "@konverge/contracts";
import { formatKey, parseKey, type ObjectKey } from "@konverge/core";
import { fightObject, type AttemptRow } from "@konverge/queue";
import { Hono } from "hono";
import type { QueueAccess } from "./queue-access.ts";
import { readQuery } from "./read-json.ts";

const HOURS_OF_LOOPS = 1;
const OUTCOME = "outcome.";

/** `GET /v1/attempts`: the attempts of a cluster, by what they can be found by. */
export function attemptRoutes(access: QueueAccess): Hono {
  return new Hono().get("/", async (context) => {
    const query = readQuery(context.req, attemptQuerySchema);
    const { cluster, kind, error, ...rest } = query;
    const page = await access.history(cluster).search({
      ...rest,
      errorCode: error,
      resource: kind === undefined ? undefined : await resourceOf(access, cluster, kind),
    });
    const answer: AttemptPage = {
      items: page.items.map(summaryOf),
      ...(page.next === undefined ? {} : { next: page.next }),
    };
    return context.json(answer);
  });
}

/** `GET /v1/fights`: who fights over what, and which keys are slowed down for it. */
export function fightRoutes(access: QueueAccess): Hono {
  return new Hono().get("/", async (context) => {
    const { cluster, hours } = readQuery(context.req, fightsQuerySchema);
    const { hot, flips, loops } = await access.history(cluster).fights(hours);
    const answer: Fights = {
      hot: hot.map(({ object, conflicts }) => ({ ...objectOf(object), conflicts })),
      flips: flips.map(({ object, ...flip }) => ({ ...objectOf(object), ...flip })),
      loops: [...loops].flatMap(([key, text]) => {
        const state = loopOf(text);
        return state === undefined ? [] : [{ key, ...state }];
      }),
    };
    return context.json(answer);
  });
}

/** `GET /v1/rollups`: what a controller did, per minute. */
export function rollupRoutes(access: QueueAccess): Hono {
  return new Hono().get("/", async (context) => {
    const { cluster, controller, minutes } = readQuery(context.req, rollupsQuerySchema);
    // Unknown controllers are told as such, and not as idle ones.
    await access.find(cluster, controller);
    const items = await access.history(cluster).rollups(controller, minutes);
    const answer: Rollups = {
      items: items.map(({ atMs, counts }) => {
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
      }),
    };
    return context.json(answer);
  });
}

/** Who fights over the object of a key, and whether the key is slowed down. */
export async function readContention(access: QueueAccess, key: ObjectKey): Promise<Contention> {
  const { resource, group, namespace, name, cluster } = key;
  const type = group === "" ? resource : `${resource}.${group}`;
  const where = { resource: type, ...(namespace === undefined ? {} : { namespace }), name };
  const history = access.history(cluster);
  const [contenders, { loops }] = await Promise.all([
    history.contention(fightObject(where)),
    history.fights(HOURS_OF_LOOPS),
  ]);
  const loop = loopOf(loops.get(formatKey(key)));
  return {
    ...where,
    contenders: contenders.map(({ firstMs, lastMs, ...contender }) => ({
      ...contender,
      firstAt: new Date(firstMs).toISOString(),
      lastAt: new Date(lastMs).toISOString(),
    })),
    ...(loop === undefined ? {} : { loop }),
  };
}

/** By the names that the controllers of the cluster gave their kinds; anything else is a plural already. */
async function resourceOf(access: QueueAccess, cluster: string, kind: string): Promise<string> {
  const wanted = kind.toLowerCase();
  const known = await access.controllers(cluster);
  const found = known.find((controller) => controller.kind.toLowerCase() === wanted);
  return found?.resource ?? wanted;
}

function summaryOf(row: AttemptRow): AttemptSummary {
  const { key, epoch, errorCode, startedAtMs, managers, hints, ...rest } = row;
  const { controller, resource, group, namespace, name } = parseKey(key);
  return {
    ...rest,
    id: `${key}#${epoch}`,
    key,
    controller,
    resource: group === "" ? resource : `${resource}.${group}`,
    ...(namespace === undefined ? {} : { namespace }),
    name,
    ...(errorCode === "" ? {} : { errorCode }),
    managers: [...managers],
    hints: [...hints],
    startedAt: new Date(startedAtMs).toISOString(),
  };
}

function objectOf(object: string): { resource: string; namespace?: string; name: string } {
  const [resource = "", namespace = "_", name = ""] = object.split("/").map(decodeURIComponent);
  return { resource, ...(namespace === "_" ? {} : { namespace }), name };
}

/** What another version stored is left out. */
function loopOf(text: string | undefined): LoopState | undefined {
  if (text === undefined) return undefined;
  const parsed = loopStateSchema.safeParse(JSON.parse(text));
  return parsed.success ? parsed.data : undefined;
}
