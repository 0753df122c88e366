import { KonvergeError, sleepMs } from "@konverge/core";
import { clusterRoot, runScript, withRedis, type RedisClient } from "@konverge/redis";
import type { Approval } from "./approval.ts";
import { changeApprovalScript } from "./scripts/change-approval.ts";

/** The plans of a cluster that wait for users. Each call throws KonvergeError `redis_unavailable`. */
export interface ApprovalStore {
  read(key: string): Promise<Approval | undefined>;
  /** The record of the plan that waits. */
  readPlan(key: string): Promise<string | undefined>;
  list(): Promise<readonly Approval[]>;
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

/** Callers that change one approval at the same time are few: a worker and some users. */
const MOST_TRIES = 20;
const SCANNED = 500;

export function createApprovalStore(
  redis: RedisClient,
  { prefix, cluster }: { readonly prefix: string; readonly cluster: string },
): ApprovalStore {
  const root = clusterRoot(prefix, cluster);
  const approvals = `${root}/approvals`;
  const due = `${root}/approvals-due`;
  const planOf = (key: string) => `${root}/approval-plans/${key}`;
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
    due: () => withRedis(redis, () => redis.smembers(due)),
    async change(key, change, { record = "" } = {}) {
      for (let tries = 1; tries <= MOST_TRIES; tries += 1) {
        const expected = (await readText(key)) ?? "";
        const next = change(parsed(expected));
        const stored = next === undefined ? "" : JSON.stringify(next);
        if (stored === expected) return next;
        const isDue = next?.state === "approved";
        const changed = await withRedis(redis, () =>
          runScript(redis, changeApprovalScript, {
            keys: { approvals, due, plan: planOf(key) },
            args: { key, expected, stored, record, isDue },
          }),
        );
        if (changed) return next;
        await sleepMs(tries * Math.random());
      }
      throw new KonvergeError(
        "redis_unavailable",
        `the approval of ${key} was changed concurrently ${MOST_TRIES} times; retry later`,
      );
    },
  };
}

function parsed(text: string | null): Approval | undefined {
  return text === null || text === "" ? undefined : (JSON.parse(text) as Approval);
}
