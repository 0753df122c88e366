import { parseKey } from "@konverge/core";
import { clusterRoot, runScript, withRedis, type RedisClient } from "@konverge/redis";
import { dropPlanScript } from "../plans/scripts/drop-plan.ts";
import { storePlanScript } from "../plans/scripts/store-plan.ts";

/** A change that an observing controller would make to an object. */
export interface DriftChange {
  /** `plural.group`. */
  readonly resource: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  readonly action: "created" | "changed" | "deleted" | "replaced";
  /** Paths of the fields that it would change, sorted. Empty for other actions. */
  readonly fields: readonly string[];
  /** The managers that own these fields now, and when each of them last wrote the object. */
  readonly moved: readonly {
    readonly manager: string;
    readonly path: string;
    readonly at?: string | undefined;
  }[];
}

/** The difference between an object and what its observing controller would make of it. Times are ISO 8601. */
export interface Drift {
  /** The key of the object, in its canonical text form. */
  readonly key: string;
  readonly controller: string;
  /** The first plan since the object had no drift. */
  readonly since: string;
  /** The stored plan. */
  readonly at: string;
  readonly summary: Readonly<Record<string, number>>;
  readonly changes: readonly DriftChange[];
  /** Number of changes that are not listed. */
  readonly moreChanges?: number;
}

/** The drift of a cluster's objects: one entry and one plan per object. Each call throws KonvergeError `redis_unavailable`. */
export interface DriftStore {
  read(key: string): Promise<Drift | undefined>;
  /** The record of the plan; undefined if it was dropped, because the records of the cluster are limited. */
  readPlan(key: string): Promise<string | undefined>;
  list(controller: string): Promise<readonly Drift[]>;
  /** Number of objects with drift. */
  count(controller: string): Promise<number>;
  store(drift: Drift, record: string): Promise<void>;
  remove(key: string): Promise<void>;
}

/** Retention of a plan, in ms. The entry remains; plans are stored again after some time. */
const KEPT_MS = 7 * 86_400_000;
/** Retention of the entries of a controller that no worker runs, in ms. */
const OF_CONTROLLER_MS = 30 * 86_400_000;
const SCANNED = 500;

export interface DriftPlace {
  readonly prefix: string;
  readonly cluster: string;
}

export function createDriftStore(redis: RedisClient, place: DriftPlace): DriftStore {
  // Apart from the plans that users have requested, which these may not displace.
  const root = `${clusterRoot(place.prefix, place.cluster)}/drift`;
  const hashOf = (key: string) => driftKey(place, parseKey(key).controller);
  const planOf = (key: string) => `${root}/plans/${key}`;
  const plansKeysOf = (key: string) => ({
    plans: `${root}/plans-of/${key}`,
    ages: `${root}/plan-ages`,
    sizes: `${root}/plan-sizes`,
  });
  return {
    async read(key) {
      const text = await withRedis(redis, () => redis.hget(hashOf(key), key));
      return text === null ? undefined : (JSON.parse(text) as Drift);
    },
    readPlan: async (key) => (await withRedis(redis, () => redis.get(planOf(key)))) ?? undefined,
    async list(controller) {
      // A field may be returned twice while the hash grows.
      const found = new Map<string, string>();
      let cursor = "0";
      do {
        const [next, fields] = await withRedis(redis, () =>
          redis.hscan(driftKey(place, controller), cursor, "COUNT", SCANNED),
        );
        for (let at = 0; at + 1 < fields.length; at += 2) {
          found.set(fields[at] ?? "", fields[at + 1] ?? "");
        }
        cursor = next;
      } while (cursor !== "0");
      return [...found.values()].map((text) => JSON.parse(text) as Drift);
    },
    count: (controller) => withRedis(redis, () => redis.hlen(driftKey(place, controller))),
    async store(drift, record) {
      const { key } = drift;
      const keys = plansKeysOf(key);
      // The ID is that of the object, so its next plan replaces this one.
      const args = { records: planOf(""), id: key, record, keptMs: KEPT_MS };
      await withRedis(redis, () =>
        Promise.all([
          redis.hset(hashOf(key), key, JSON.stringify(drift)),
          redis.pexpire(hashOf(key), OF_CONTROLLER_MS),
          runScript(redis, storePlanScript, { keys, args }),
        ]),
      );
    },
    async remove(key) {
      await withRedis(redis, () =>
        Promise.all([
          redis.hdel(hashOf(key), key),
          runScript(redis, dropPlanScript, {
            keys: plansKeysOf(key),
            args: { records: planOf(""), id: key },
          }),
        ]),
      );
    },
  };
}

/** The drift of a controller's objects, by key. */
export function driftKey({ prefix, cluster }: DriftPlace, controller: string): string {
  return `${clusterRoot(prefix, cluster)}/drift/of/${encodeURIComponent(controller)}`;
}
