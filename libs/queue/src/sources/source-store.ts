import { randomBytes } from "node:crypto";
import { ensureError } from "@konverge/core";
import {
  closeRedis,
  DEFAULT_PREFIX,
  openProducer,
  openSubscriber,
  runScript,
  withRedis,
  type RedisClient,
  type RedisTarget,
} from "@konverge/redis";
import { acceptDeliveryScript, type AcceptedDelivery } from "./scripts/accept-delivery.ts";
import { advanceSourceScript } from "./scripts/advance-source.ts";
import { claimSourceScript, type SourceClaim } from "./scripts/claim-source.ts";
import { settleDeliveryScript } from "./scripts/settle-delivery.ts";
import { takeDeliveriesScript, type TakenDeliveries } from "./scripts/take-deliveries.ts";
import { sourceNames, type SourceNames, type SourcePlace } from "./source-names.ts";
import type { SourceReport } from "./source-report.ts";

/** Items per call, so that a script does not block Redis for long. */
const MAX_ITEMS = 500;

export interface SourceAdvance {
  readonly cursor?: string;
  /** Versions by object; undefined forgets the object. */
  readonly versions?: readonly (readonly [object: string, version: string | undefined])[];
}

export interface NewDelivery {
  /** The delivery (JSON). */
  readonly text: string;
  /** Identifiers of the delivery. A later delivery with one of them is a repetition. */
  readonly marks: readonly string[];
  /** How long repetitions are recognized, in ms. */
  readonly windowMs: number;
  /** The signed time, in epoch ms, and its largest difference from the clock of Redis, in ms. */
  readonly sent?: { readonly atMs: number; readonly toleranceMs: number };
}

/** A delivery that waits for `map`. */
export interface StoredDelivery {
  readonly number: string;
  /** JSON. */
  readonly text: string;
  readonly receivedAtMs: number;
  /** Failed tries. */
  readonly tries: number;
}

/** The state of a cluster's sources in Redis. Each call throws KonvergeError `redis_unavailable`. */
export interface SourceStore {
  /** Makes the caller the only one that can advance the source. */
  claim(place: SourcePlace): Promise<SourceClaim>;
  /** Returns false if another process has claimed the source since. */
  advance(place: SourcePlace, claim: SourceClaim, advance: SourceAdvance): Promise<boolean>;
  /** The versions of the items of a poll, by object. */
  versions(place: SourcePlace): Promise<Map<string, string>>;
  report(report: SourceReport): Promise<void>;
  reports(): Promise<readonly SourceReport[]>;
  /** Stores a verified delivery of an inbound source. */
  accept(name: string, delivery: NewDelivery): Promise<AcceptedDelivery>;
  /** Returns the numbers of due deliveries of an inbound source. They stay stored until they are settled. */
  take(name: string, most: number): Promise<TakenDeliveries>;
  /** Undefined if it was removed. */
  read(name: string, number: string): Promise<StoredDelivery | undefined>;
  /** Removes a delivery, or delays its next try. */
  settle(
    name: string,
    number: string,
    failed?: { readonly againMs: number; readonly error: string },
  ): Promise<void>;
  /** Calls `listener` when an inbound source has a new delivery. Messages can be lost. Returns the function that ends it. */
  onArrived(name: string, listener: () => void): () => void;
  close(): Promise<void>;
}

export interface SourceStoreOptions {
  readonly redis: RedisTarget;
  readonly cluster: string;
  readonly prefix?: string;
  readonly onError: (error: Error) => void;
}

/** Connects in the background; calls wait up to 1 s for Redis. */
export function openSourceStore(options: SourceStoreOptions): SourceStore {
  return new RedisSourceStore(options);
}

class RedisSourceStore implements SourceStore {
  readonly #options: SourceStoreOptions;
  readonly #redis: RedisClient;
  readonly #names: SourceNames;
  readonly #listeners = new Map<string, Set<() => void>>();
  #subscriber: RedisClient | undefined;

  constructor(options: SourceStoreOptions) {
    this.#options = options;
    this.#names = sourceNames(options.prefix ?? DEFAULT_PREFIX, options.cluster);
    this.#redis = openProducer(options.redis);
    this.#redis.on("error", options.onError);
  }

  async claim(place: SourcePlace): Promise<SourceClaim> {
    const keys = { state: this.#names.state(place) };
    return await this.#call((redis) => runScript(redis, claimSourceScript, { keys }));
  }

  async advance(
    place: SourcePlace,
    { epoch }: SourceClaim,
    { cursor, versions = [] }: SourceAdvance,
  ): Promise<boolean> {
    const keys = { state: this.#names.state(place), versions: this.#names.versions(place) };
    // The cursor is stored last, when everything before it is stored.
    for (let start = 0; start < versions.length; start += MAX_ITEMS) {
      const each = versions
        .slice(start, start + MAX_ITEMS)
        .map(([id, version = ""]) => ({ id, version }));
      const args = { epoch, cursor: "", movesCursor: false };
      const answer = await this.#call((redis) =>
        runScript(redis, advanceSourceScript, { keys, args, each }),
      );
      if (answer === "fenced") return false;
    }
    if (cursor === undefined) return true;
    const args = { epoch, cursor, movesCursor: true };
    const answer = await this.#call((redis) =>
      runScript(redis, advanceSourceScript, { keys, args, each: [] }),
    );
    return answer === "advanced";
  }

  async versions(place: SourcePlace): Promise<Map<string, string>> {
    const key = this.#names.versions(place);
    const found = new Map<string, string>();
    let cursor = "0";
    do {
      const [next, fields] = await this.#call((redis) =>
        redis.hscan(key, cursor, "COUNT", MAX_ITEMS),
      );
      for (let at = 0; at < fields.length; at += 2) {
        found.set(fields[at] ?? "", fields[at + 1] ?? "");
      }
      cursor = next;
    } while (cursor !== "0");
    return found;
  }

  async report(report: SourceReport): Promise<void> {
    const field = `${report.controller}/${report.source}`;
    const { reports } = this.#names;
    await this.#call((redis) => redis.hset(reports, field, JSON.stringify(report)));
  }

  async reports(): Promise<readonly SourceReport[]> {
    const stored = await this.#call((redis) => redis.hvals(this.#names.reports));
    return stored.map((text) => JSON.parse(text) as SourceReport);
  }

  async accept(
    name: string,
    { text, marks, windowMs, sent = { atMs: 0, toleranceMs: 0 } }: NewDelivery,
  ): Promise<AcceptedDelivery> {
    const root = this.#names.inbound(name);
    const args = {
      root,
      name,
      number: randomBytes(12).toString("base64url"),
      text,
      windowMs,
      channel: this.#names.arrived,
      sentAtMs: sent.atMs,
      toleranceMs: sent.toleranceMs,
    };
    const keys = { due: `${root}/due`, received: `${root}/received`, bytes: `${root}/bytes` };
    const each = marks.map((mark) => ({ seen: `${root}/seen/${mark}` }));
    return await this.#call((redis) =>
      runScript(redis, acceptDeliveryScript, { keys, args, each }),
    );
  }

  async take(name: string, most: number): Promise<TakenDeliveries> {
    const root = this.#names.inbound(name);
    const keys = { due: `${root}/due`, received: `${root}/received` };
    const args = { most };
    return await this.#call((redis) => runScript(redis, takeDeliveriesScript, { keys, args }));
  }

  async read(name: string, number: string): Promise<StoredDelivery | undefined> {
    const key = `${this.#names.inbound(name)}/delivery/${number}`;
    const [text, receivedAt, tries] = await this.#call((redis) =>
      redis.hmget(key, "text", "receivedAt", "tries"),
    );
    if (typeof text !== "string") return undefined;
    return { number, text, receivedAtMs: Number(receivedAt), tries: Number(tries) };
  }

  async settle(
    name: string,
    number: string,
    { againMs, error }: { readonly againMs: number; readonly error: string } = {
      againMs: 0,
      error: "",
    },
  ): Promise<void> {
    const root = this.#names.inbound(name);
    const keys = { due: `${root}/due`, received: `${root}/received`, bytes: `${root}/bytes` };
    const args = { root, number, againMs, detail: error };
    await this.#call((redis) => runScript(redis, settleDeliveryScript, { keys, args }));
  }

  onArrived(name: string, listener: () => void): () => void {
    this.#subscribe();
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners);
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  async close(): Promise<void> {
    if (this.#subscriber !== undefined) await closeRedis(this.#subscriber);
    await closeRedis(this.#redis);
  }

  #subscribe(): void {
    if (this.#subscriber !== undefined) return;
    const { redis, onError } = this.#options;
    const subscriber = openSubscriber(redis);
    this.#subscriber = subscriber;
    subscriber.on("error", onError);
    subscriber.on("message", (_: string, name: string) => {
      for (const listener of this.#listeners.get(name) ?? []) listener();
    });
    subscriber
      .subscribe(this.#names.arrived)
      .catch((error: unknown) => onError(ensureError(error)));
  }

  #call<T>(run: (redis: RedisClient) => Promise<T>): Promise<T> {
    return withRedis(this.#redis, () => run(this.#redis));
  }
}
