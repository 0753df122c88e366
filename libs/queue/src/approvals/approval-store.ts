import { randomUUID } from "node:crypto";
import { KonvergeError, sleepMs } from "@konverge/core";
import { clusterRoot, runScript, withRedis, type RedisClient } from "@konverge/redis";
import type { Approval } from "./approval.ts";
import { changeApprovalScript, KEPT_MS } from "./scripts/change-approval.ts";
import { forgetRequestersScript } from "./scripts/forget-requesters.ts";

/** The plans of a cluster that wait for users. Each call throws KonvergeError `redis_unavailable`. */
export interface ApprovalStore {
  read(key: string): Promise<Approval | undefined>;
  /** The record of the plan that waits; undefined if it was dropped, because the records of the cluster are limited. */
  readPlan(key: string): Promise<string | undefined>;
  list(): Promise<readonly Approval[]>;
  /** Notes a user who requests the object, before the request is made. */
  noteRequester(key: string, by: string): Promise<void>;
  /** The users whose requests no attempt has applied yet, each with a mark of the latest request. */
  requesters(key: string): Promise<Requesters>;
  /** Forgets users, unless they have made another request since their marks were read. */
  forgetRequesters(key: string, applied: Requesters): Promise<void>;
  /** The keys whose approved plans wait for their attempts. */
  due(): Promise<readonly string[]>;
  /**
   * Replaces the approval of a key by the result of `change`; undefined removes it. `change` may run again, if another caller
   * changes it at the same time. `record`: the record of a new plan. @throws as `change`
   */
  change<Next extends Approval | undefined>(
    key: string,
    change: (current: Approval | undefined) => Next,
    options?: { readonly record?: string },
  ): Promise<Next>;
}

/** Marks of requests, by the names of users. */
export type Requesters = ReadonlyMap<string, string>;

/** Maximum time for a change while other callers change the approval, in ms. They are few: a worker and some users. */
const MOST_MS = 10_000;
/** Longest wait before another try, in ms. */
const MOST_WAIT_MS = 50;
const SCANNED = 500;

export function createApprovalStore(
  redis: RedisClient,
  { prefix, cluster }: { readonly prefix: string; readonly cluster: string },
): ApprovalStore {
  const root = clusterRoot(prefix, cluster);
  const approvals = `${root}/approvals`;
  const due = `${root}/approvals-due`;
  const ages = `${root}/approval-ages`;
  const sizes = `${root}/approval-sizes`;
  const planOf = (key: string) => `${root}/approval-plans/${key}`;
  const requestersOf = (key: string) => `${root}/approval-requesters/${key}`;
  const readText = (key: string) => withRedis(redis, () => redis.hget(approvals, key));

  return {
    read: async (key) => parsed(await readText(key)),
    readPlan: async (key) => (await withRedis(redis, () => redis.get(planOf(key)))) ?? undefined,
    async list() {
      // A field may be returned twice while the hash grows.
      const found = new Map<string, string>();
      let cursor = "0";
      do {
        const [next, fields] = await withRedis(redis, () =>
          redis.hscan(approvals, cursor, "COUNT", SCANNED),
        );
        for (let at = 0; at + 1 < fields.length; at += 2) {
          found.set(fields[at] ?? "", fields[at + 1] ?? "");
        }
        cursor = next;
      } while (cursor !== "0");
      return [...found.values()].flatMap((text) => parsed(text) ?? []);
    },
    async noteRequester(key, by) {
      await withRedis(redis, () =>
        Promise.all([
          redis.hset(requestersOf(key), by, randomUUID()),
          // A request that was rejected has no attempt, which would forget its user.
          redis.pexpire(requestersOf(key), KEPT_MS),
        ]),
      );
    },
    async requesters(key) {
      return new Map(
        Object.entries(await withRedis(redis, () => redis.hgetall(requestersOf(key)))),
      );
    },
    async forgetRequesters(key, applied) {
      if (applied.size === 0) return;
      await withRedis(redis, () =>
        runScript(redis, forgetRequestersScript, {
          keys: { requesters: requestersOf(key) },
          each: [...applied].map(([name, mark]) => ({ name, mark })),
        }),
      );
    },
    due: () => withRedis(redis, () => redis.smembers(due)),
    async change(key, change, { record = "" } = {}) {
      const endMs = performance.now() + MOST_MS;
      for (let tries = 1; ; tries += 1) {
        const expected = (await readText(key)) ?? "";
        const next = change(parsed(expected));
        const stored = next === undefined ? "" : JSON.stringify(next);
        if (stored === expected) return next;
        const isDue = next?.state === "approved";
        const changed = await withRedis(redis, () =>
          runScript(redis, changeApprovalScript, {
            keys: { approvals, due, ages, sizes },
            args: { records: planOf(""), key, expected, stored, record, isDue },
          }),
        );
        if (changed) return next;
        if (performance.now() > endMs) throw contended(key);
        await sleepMs(Math.random() * Math.min(MOST_WAIT_MS, tries));
      }
    },
  };
}

function contended(key: string): KonvergeError {
  const seconds = MOST_MS / 1_000;
  return new KonvergeError(
    "redis_unavailable",
    `other callers kept changing the approval of ${key} for ${seconds} s; retry later`,
  );
}

function parsed(text: string | null): Approval | undefined {
  return text === null || text === "" ? undefined : (JSON.parse(text) as Approval);
}
