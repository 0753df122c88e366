import type { Fault } from "@konverge/core";
import {
  closeRedis,
  DEFAULT_PREFIX,
  openProducer,
  runScript,
  withRedis,
  type RedisClient,
  type RedisTarget,
} from "@konverge/redis";
import { createApprovalStore, type ApprovalStore } from "../approvals/approval-store.ts";
import type { Approval } from "../approvals/approval.ts";
import { notificationNames, type NotificationNames } from "./notification-names.ts";
import type { NotificationRecord } from "./notification-record.ts";
import { composeNotificationScript } from "./scripts/compose-notification.ts";
import { leadNotificationsScript } from "./scripts/lead-notifications.ts";
import { recordNotificationScript } from "./scripts/record-notification.ts";

/** Messages that are kept per cluster, with about 3 KiB each. */
const MOST_MESSAGES = 1_000;

/** A subscription without a leader for this long was removed. If it returns, its open faults are reported again. */
const TOLD_TTL_MS = 30 * 24 * 3_600_000;

/** The changes of the faults that a receiver has been notified of. */
export interface ToldChanges {
  readonly subscription: string;
  /** By id; undefined for a fault that has ended. */
  readonly changes: ReadonlyMap<string, Fault | undefined>;
  /** The message about them; missing if the receiver gets none. */
  readonly message?: NotificationRecord;
}

/** The notifications of a cluster in Redis. Each call throws KonvergeError `redis_unavailable`. */
export interface NotificationStore {
  /** Takes or renews the right to send the messages of a subscription for `ttlMs`. */
  lead(subscription: string, process: string, ttlMs: number): Promise<"new" | "kept" | "other">;
  /** Releases the right, so that another process can send at once. */
  resign(subscription: string, process: string): Promise<void>;
  /** The plans that await a decision of users or were decided. */
  approvals(): Promise<readonly Approval[]>;
  /** The start of current contention, in epoch ms, by controller and object. */
  contended(): Promise<Map<string, number>>;
  /** Stores starts of contention; undefined if it has ended. A start that is already stored is kept. */
  setContended(changes: ReadonlyMap<string, number | undefined>): Promise<void>;
  /** The faults that a receiver has been notified of, by id. */
  told(subscription: string): Promise<Map<string, Fault>>;
  /** The messages that are not delivered yet. */
  waiting(): Promise<readonly NotificationRecord[]>;
  /** Returns the start of the open group of a subscription, which is `nowMs` for a new group. */
  openGroup(subscription: string, nowMs: number): Promise<number>;
  closeGroup(subscription: string): Promise<void>;
  /** Returns false if the process does not lead. */
  compose(process: string, told: ToldChanges): Promise<boolean>;
  /** Replaces a waiting message. Returns false if the process does not lead. */
  record(process: string, message: NotificationRecord): Promise<boolean>;
  /** The newest first. */
  list(limit: number): Promise<readonly NotificationRecord[]>;
  close(): Promise<void>;
}

export interface NotificationStoreOptions {
  readonly cluster: string;
  readonly prefix?: string;
  readonly redis: RedisTarget;
  readonly onError: (error: Error) => void;
}

/** Connects in the background; calls wait up to 1 s for Redis. */
export function openNotificationStore(options: NotificationStoreOptions): NotificationStore {
  return new RedisNotificationStore(options);
}

class RedisNotificationStore implements NotificationStore {
  readonly #redis: RedisClient;
  readonly #approvals: ApprovalStore;
  readonly #names: NotificationNames;

  constructor({ redis, onError, cluster, prefix = DEFAULT_PREFIX }: NotificationStoreOptions) {
    this.#names = notificationNames(prefix, cluster);
    this.#redis = openProducer(redis);
    this.#redis.on("error", onError);
    this.#approvals = createApprovalStore(this.#redis, { prefix, cluster });
  }

  lead(subscription: string, process: string, ttlMs: number): Promise<"new" | "kept" | "other"> {
    const keys = {
      leader: this.#names.leader(subscription),
      told: this.#names.told(subscription),
    };
    const args = { process, ttlMs, toldTtlMs: TOLD_TTL_MS };
    return this.#call((redis) => runScript(redis, leadNotificationsScript, { keys, args }));
  }

  async resign(subscription: string, process: string): Promise<void> {
    // If the right ends between the two calls, the next leader waits for one interval only.
    const leader = this.#names.leader(subscription);
    const holder = await this.#call((redis) => redis.get(leader));
    if (holder === process) await this.#call((redis) => redis.del(leader));
  }

  approvals(): Promise<readonly Approval[]> {
    return this.#approvals.list();
  }

  async contended(): Promise<Map<string, number>> {
    const { contended } = this.#names;
    const stored = await this.#call((redis) => redis.hgetall(contended));
    return new Map(Object.entries(stored).map(([subject, sinceMs]) => [subject, Number(sinceMs)]));
  }

  async setContended(changes: ReadonlyMap<string, number | undefined>): Promise<void> {
    if (changes.size === 0) return;
    const { contended } = this.#names;
    await this.#call((redis) =>
      Promise.all(
        [...changes].map(([subject, sinceMs]) =>
          sinceMs === undefined
            ? redis.hdel(contended, subject)
            : redis.hsetnx(contended, subject, sinceMs),
        ),
      ),
    );
  }

  async told(subscription: string): Promise<Map<string, Fault>> {
    const key = this.#names.told(subscription);
    const stored = await this.#call((redis) => redis.hgetall(key));
    return new Map(Object.entries(stored).map(([id, text]) => [id, JSON.parse(text) as Fault]));
  }

  async waiting(): Promise<readonly NotificationRecord[]> {
    const { waiting } = this.#names;
    const ids = await this.#call((redis) => redis.hvals(waiting));
    return await this.#messages(ids);
  }

  async openGroup(subscription: string, nowMs: number): Promise<number> {
    const { groups } = this.#names;
    const [, startMs] = await this.#call((redis) =>
      Promise.all([redis.hsetnx(groups, subscription, nowMs), redis.hget(groups, subscription)]),
    );
    return Number(startMs ?? nowMs);
  }

  async closeGroup(subscription: string): Promise<void> {
    await this.#call((redis) => redis.hdel(this.#names.groups, subscription));
  }

  async compose(
    process: string,
    { subscription, changes, message }: ToldChanges,
  ): Promise<boolean> {
    const { leader, told, groups, waiting, messages, recent } = this.#names;
    return await this.#call((redis) =>
      runScript(redis, composeNotificationScript, {
        keys: {
          leader: leader(subscription),
          told: told(subscription),
          groups,
          waiting,
          messages,
          recent,
        },
        args: {
          process,
          subscription,
          id: message?.id ?? "",
          content: message === undefined ? "" : JSON.stringify(message),
          atMs: message?.createdAtMs ?? 0,
          most: MOST_MESSAGES,
        },
        each: [...changes].map(([fault, value]) => ({
          fault,
          json: value === undefined ? "" : JSON.stringify(value),
        })),
      }),
    );
  }

  async record(process: string, message: NotificationRecord): Promise<boolean> {
    const { leader, waiting, messages } = this.#names;
    const { subscription, id, state } = message;
    return await this.#call((redis) =>
      runScript(redis, recordNotificationScript, {
        keys: { leader: leader(subscription), waiting, messages },
        args: {
          process,
          subscription,
          id,
          content: JSON.stringify(message),
          ended: state !== "waiting",
        },
      }),
    );
  }

  async list(limit: number): Promise<readonly NotificationRecord[]> {
    const { recent } = this.#names;
    const ids = await this.#call((redis) => redis.zrevrange(recent, 0, limit - 1));
    return await this.#messages(ids);
  }

  close(): Promise<void> {
    return closeRedis(this.#redis);
  }

  async #messages(ids: readonly string[]): Promise<NotificationRecord[]> {
    if (ids.length === 0) return [];
    const texts = await this.#call((redis) => redis.hmget(this.#names.messages, ...ids));
    return texts.flatMap((text) => (text === null ? [] : [JSON.parse(text) as NotificationRecord]));
  }

  #call<T>(run: (redis: RedisClient) => Promise<T>): Promise<T> {
    return withRedis(this.#redis, () => run(this.#redis));
  }
}
