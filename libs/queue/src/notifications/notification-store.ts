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
import { notificationNames, type NotificationNames } from "./notification-names.ts";
import type { NotificationRecord } from "./notification-record.ts";
import { publishFault, withdrawFault, type FaultPlace } from "./publish-fault.ts";
import { composeNotificationScript } from "./scripts/compose-notification.ts";
import { leadNotificationsScript } from "./scripts/lead-notifications.ts";
import { recordNotificationScript } from "./scripts/record-notification.ts";

/** Messages that are kept per cluster, with about 3 KiB each. */
const MOST_MESSAGES = 1_000;

/** The changes of the faults that a receiver has been notified of. */
export interface ToldChanges {
  readonly receiver: string;
  /** By id; undefined for a fault that has ended. */
  readonly changes: ReadonlyMap<string, Fault | undefined>;
  /** The message about them; missing if the receiver gets none. */
  readonly message?: NotificationRecord;
}

/** The notifications of a cluster in Redis. Each call throws KonvergeError `redis_unavailable`. */
export interface NotificationStore {
  /** Takes or renews the right to send for `ttlMs`. */
  lead(process: string, ttlMs: number): Promise<"new" | "kept" | "other">;
  /** Releases the right, so that another process can send at once. */
  resign(process: string): Promise<void>;
  /** The faults that other parts have published, by id. */
  published(): Promise<Map<string, Fault>>;
  /** The faults that a receiver has been notified of, by id. */
  told(receiver: string): Promise<Map<string, Fault>>;
  /** The messages that are not delivered yet. */
  waiting(): Promise<readonly NotificationRecord[]>;
  /** Returns the start of the open group of a receiver, which is `nowMs` for a new group. */
  openGroup(receiver: string, nowMs: number): Promise<number>;
  closeGroup(receiver: string): Promise<void>;
  /** Returns false if the process does not lead. */
  compose(process: string, told: ToldChanges): Promise<boolean>;
  /** Replaces a waiting message. Returns false if the process does not lead. */
  record(process: string, message: NotificationRecord): Promise<boolean>;
  /** The newest first. */
  list(limit: number): Promise<readonly NotificationRecord[]>;
  /** As `publishFault`. */
  publish(fault: Fault): Promise<boolean>;
  /** As `withdrawFault`. */
  withdraw(fault: Pick<Fault, "event" | "subject">): Promise<void>;
  close(): Promise<void>;
}

export interface NotificationStoreOptions extends FaultPlace {
  readonly redis: RedisTarget;
  readonly onError: (error: Error) => void;
}

/** Connects in the background; calls wait up to 1 s for Redis. */
export function openNotificationStore(options: NotificationStoreOptions): NotificationStore {
  return new RedisNotificationStore(options);
}

class RedisNotificationStore implements NotificationStore {
  readonly #redis: RedisClient;
  readonly #place: FaultPlace;
  readonly #names: NotificationNames;

  constructor({ redis, onError, ...place }: NotificationStoreOptions) {
    this.#place = place;
    this.#names = notificationNames(place.prefix ?? DEFAULT_PREFIX, place.cluster);
    this.#redis = openProducer(redis);
    this.#redis.on("error", onError);
  }

  lead(process: string, ttlMs: number): Promise<"new" | "kept" | "other"> {
    const keys = { leader: this.#names.leader };
    const args = { process, ttlMs };
    return this.#call((redis) => runScript(redis, leadNotificationsScript, { keys, args }));
  }

  async resign(process: string): Promise<void> {
    // If the right ends between the two calls, the next leader waits for one interval only.
    const { leader } = this.#names;
    const holder = await this.#call((redis) => redis.get(leader));
    if (holder === process) await this.#call((redis) => redis.del(leader));
  }

  published(): Promise<Map<string, Fault>> {
    return this.#faults(this.#names.published);
  }

  told(receiver: string): Promise<Map<string, Fault>> {
    return this.#faults(this.#names.told(receiver));
  }

  async waiting(): Promise<readonly NotificationRecord[]> {
    const { waiting } = this.#names;
    const ids = await this.#call((redis) => redis.hvals(waiting));
    return await this.#messages(ids);
  }

  async openGroup(receiver: string, nowMs: number): Promise<number> {
    const { groups } = this.#names;
    const [, startMs] = await this.#call((redis) =>
      Promise.all([redis.hsetnx(groups, receiver, nowMs), redis.hget(groups, receiver)]),
    );
    return Number(startMs ?? nowMs);
  }

  async closeGroup(receiver: string): Promise<void> {
    await this.#call((redis) => redis.hdel(this.#names.groups, receiver));
  }

  async compose(process: string, { receiver, changes, message }: ToldChanges): Promise<boolean> {
    const { leader, groups, waiting, messages, recent } = this.#names;
    return await this.#call((redis) =>
      runScript(redis, composeNotificationScript, {
        keys: { leader, told: this.#names.told(receiver), groups, waiting, messages, recent },
        args: {
          process,
          receiver,
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
    const { receiver, id, state } = message;
    return await this.#call((redis) =>
      runScript(redis, recordNotificationScript, {
        keys: { leader, waiting, messages },
        args: {
          process,
          receiver,
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

  publish(fault: Fault): Promise<boolean> {
    return publishFault(this.#redis, this.#place, fault);
  }

  withdraw(fault: Pick<Fault, "event" | "subject">): Promise<void> {
    return withdrawFault(this.#redis, this.#place, fault);
  }

  close(): Promise<void> {
    return closeRedis(this.#redis);
  }

  async #faults(key: string): Promise<Map<string, Fault>> {
    const stored = await this.#call((redis) => redis.hgetall(key));
    return new Map(Object.entries(stored).map(([id, text]) => [id, JSON.parse(text) as Fault]));
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
