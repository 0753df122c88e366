import {
  nextDelay,
  defined,
  ensureError,
  KonvergeError,
  sleepMs,
  type ApiObject,
  type BackoffPolicy,
  type ResourceType,
} from "@konverge/core";
import type { KubeClient, ListOptions, ListPageOptions } from "../contract/kube-client.ts";
import type { WatchEvent } from "../contract/watch-event.ts";
import { listPages } from "../wire/list-pages.ts";
import type { IndexFunction, ObjectSelection } from "./indexed-objects.ts";
import {
  createReflectorStore,
  type ObjectEvent,
  type ReflectorStore,
  type StoreSize,
} from "./reflector-store.ts";
import { WatchBackoff } from "./watch-backoff.ts";
import { recoverWatch, type WatchRecovery } from "./watch-failure.ts";

export interface ReflectorEvent<T> extends ObjectEvent<T> {
  /** True for the first list: nothing changed just now. */
  readonly initial: boolean;
  /** Any state at this version or later contains the change, including a deletion that only a list revealed. */
  readonly version: string;
}

export interface ReflectorOptions<T extends ApiObject> {
  readonly client: KubeClient;
  readonly type: ResourceType<T>;
  /** Default: all namespaces. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /**
   * Called for each change, in order per object. It is awaited: a change counts as delivered when it resolves, and is
   * delivered again until then (P1). Must not wait for the reflector's own `stop`.
   */
  readonly onEvent: (event: ReflectorEvent<T>) => void | Promise<void>;
  /**
   * Keeps a part of each object, which is stored and delivered; name, uid and version must stay. Default: all of it.
   */
  readonly trim?: (object: T) => T;
  /** Indexes for `list`, besides those by namespace and owner. */
  readonly indexes?: readonly IndexFunction[];
  /** Receives the error of an index function. The object then has no value in this index. */
  readonly onIndexError?: (error: unknown, object: ApiObject, index: IndexFunction) => void;
  /** Called after the first list. */
  readonly onSynced?: () => void;
  /** Called for each failure outside the normal life of a watch. The reflector recovers by itself. */
  readonly onError?: (error: Error) => void;
  /** When the server ends each watch. Default: random in [300, 600). */
  readonly timeoutSeconds?: number;
  /** A watch without data for this long is aborted, in ms. Default 90 s. */
  readonly silentMs?: number;
  readonly random?: () => number;
  /** Monotonic, in ms. */
  readonly clock?: () => number;
  readonly sleep?: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/** A local copy of all objects of a type, kept up to date by list and watch. */
export interface Reflector<T extends ApiObject> {
  start(): void;
  /** Resolves when the first list has been delivered; rejects if stopped before. */
  readonly synced: Promise<void>;
  /** Ends the watch and waits for the delivery in progress. */
  stop(): Promise<void>;
  /** Frozen; undefined if it does not exist. */
  get(namespace: string | undefined, name: string): T | undefined;
  /** Default: all objects. Costs time in proportion to the result. */
  list(selection?: ObjectSelection): T[];
  /** Counts the objects and estimates their size. */
  measure(): StoreSize;
  /** Everything up to this version has been delivered; undefined before the first list. */
  readonly lastVersion: string | undefined;
  /** Time since the server last sent anything, in ms; `Infinity` before. Bookmarks arrive about once a minute. */
  readonly ageMs: number;
}

/** Delays between deliveries of one change. Short, because later changes wait for it. */
const REDELIVERY: BackoffPolicy = {
  baseMs: 100,
  factor: 2,
  capMs: 10_000,
  steps: Infinity,
  jitter: { kind: "equal" },
};
/** A watch that ends earlier without an event counts as refused. */
const SHORT_WATCH_MS = 1_000;
/** Changes of one list that are delivered concurrently; they concern different objects. */
const CONCURRENT_DELIVERIES = 16;

export function createReflector<T extends ApiObject>(options: ReflectorOptions<T>): Reflector<T> {
  return new ListWatchReflector(options);
}

class ListWatchReflector<T extends ApiObject> implements Reflector<T> {
  readonly #options: ReflectorOptions<T>;
  readonly #store: ReflectorStore<T>;
  readonly #backoff: WatchBackoff;
  readonly #random: () => number;
  readonly #clock: () => number;
  readonly #stopping: AbortController = new AbortController();
  readonly #firstList: PromiseWithResolvers<void> = Promise.withResolvers<void>();
  #isSynced = false;
  #hasBookmarks = false;
  #lastVersion: string | undefined;
  #heardAtMs = -Infinity;
  #running: Promise<void> | undefined;

  constructor(options: ReflectorOptions<T>) {
    const { random = Math.random, clock = () => performance.now() } = options;
    this.#options = options;
    const { trim, indexes, onIndexError } = options;
    this.#store = createReflectorStore<T>(defined({ trim, indexes, onIndexError }));
    this.#backoff = new WatchBackoff({ random, clock });
    this.#random = random;
    this.#clock = clock;
    // Callers need not wait for it, and an early stop is not an error.
    this.#firstList.promise.catch(() => undefined);
  }

  start(): void {
    this.#running ??= this.#run().catch((error: unknown) => {
      if (!this.#signal.aborted) this.#reportError(error);
      this.#firstList.reject(error);
    });
  }

  get synced(): Promise<void> {
    return this.#firstList.promise;
  }

  async stop(): Promise<void> {
    const { resource } = this.#options.type;
    const reason = new KonvergeError("cancelled", `the reflector of ${resource} is stopped`);
    this.#stopping.abort(reason);
    this.#firstList.reject(reason);
    await this.#running;
  }

  get(namespace: string | undefined, name: string): T | undefined {
    return this.#store.get({ name, ...defined({ namespace }) });
  }

  list(selection?: ObjectSelection): T[] {
    return this.#store.list(selection);
  }

  measure(): StoreSize {
    return this.#store.measure();
  }

  get lastVersion(): string | undefined {
    return this.#lastVersion;
  }

  get ageMs(): number {
    return this.#clock() - this.#heardAtMs;
  }

  get #signal(): AbortSignal {
    return this.#stopping.signal;
  }

  get #selection(): Pick<ListOptions, "namespace" | "labelSelector" | "fieldSelector"> {
    const { namespace, labelSelector, fieldSelector } = this.#options;
    return defined({ namespace, labelSelector, fieldSelector });
  }

  async #run(): Promise<void> {
    await this.#list();
    for (let fresh = true; ;) {
      this.#signal.throwIfAborted();
      const recovery = await this.#watchOnce(fresh);
      fresh = recovery?.next === "list";
      if (fresh) await this.#list();
    }
  }

  async #list(): Promise<void> {
    for (;;) {
      try {
        await this.#listOnce();
        return;
      } catch (error) {
        await this.#recover(error, { next: "list", backOff: true, quiet: false });
      }
    }
  }

  /** In pages of the newest state: the whole list, which the watch cache returns in one piece, may not fit into memory. */
  async #listOnce(): Promise<void> {
    const { client, type, onSynced } = this.#options;
    const readPage = (page: ListPageOptions) => client.listPage(type, page);
    let list = this.#store.startList();
    let version = "";
    const options = { ...this.#selection, signal: this.#signal };
    for await (const { isFirst, items, resourceVersion } of listPages(readPage, options)) {
      this.#heardAtMs = this.#clock();
      if (isFirst) {
        list = this.#store.startList();
        version = resourceVersion;
      }
      await this.#deliverList(list.eventsOf(items), version);
    }
    await this.#deliverList(list.deletions(), version);
    this.#lastVersion = version;
    if (this.#isSynced) return;
    this.#isSynced = true;
    this.#firstList.resolve();
    onSynced?.();
  }

  async #deliverList(changes: readonly ObjectEvent<T>[][], version: string): Promise<void> {
    const initial = !this.#isSynced;
    const groups = changes[Symbol.iterator]();
    const deliverGroups = async (): Promise<void> => {
      for (const group of groups) {
        for (const event of group) await this.#deliver({ ...event, initial, version });
      }
    };
    await Promise.all(Array.from({ length: CONCURRENT_DELIVERIES }, deliverGroups));
  }

  async #watchOnce(fresh: boolean): Promise<WatchRecovery | undefined> {
    const beganAtMs = this.#clock();
    let events = 0;
    try {
      for await (const event of this.#openWatch()) {
        events += 1;
        this.#heardAtMs = this.#clock();
        await this.#take(event);
      }
      if (events === 0 && this.#clock() - beganAtMs < SHORT_WATCH_MS)
        await this.#backOff(undefined);
      return undefined;
    } catch (error) {
      const lived = events > 0 || this.#clock() - beganAtMs >= SHORT_WATCH_MS;
      const hasBookmarks = this.#hasBookmarks;
      return this.#recover(error, recoverWatch(error, { lived, fresh, hasBookmarks }));
    }
  }

  #openWatch(): AsyncIterable<WatchEvent<T>> {
    const { client, type, silentMs } = this.#options;
    const { timeoutSeconds = 300 + Math.floor(this.#random() * 300) } = this.#options;
    return client.watch(type, {
      ...this.#selection,
      signal: this.#signal,
      timeoutSeconds,
      ...defined({ silentMs, resourceVersion: this.#lastVersion }),
    });
  }

  async #take(event: WatchEvent<T>): Promise<void> {
    if (event.kind === "bookmark") {
      this.#hasBookmarks = true;
      if (event.resourceVersion !== "") this.#lastVersion = event.resourceVersion;
      return;
    }
    const version = event.object.metadata.resourceVersion ?? this.#lastVersion ?? "";
    for (const change of this.#store.eventsOf(event)) {
      await this.#deliver({ ...change, initial: false, version });
    }
    this.#lastVersion = version;
  }

  /** Calls `onEvent` until it resolves. */
  async #deliver(event: ReflectorEvent<T>): Promise<void> {
    this.#store.commit(event);
    for (let retry = 0; ; retry++) {
      try {
        await this.#options.onEvent(event);
        return;
      } catch (error) {
        this.#signal.throwIfAborted();
        this.#reportError(error);
        const step = nextDelay(REDELIVERY, retry, this.#random);
        await this.#sleep(step.kind === "wait" ? step.afterMs : REDELIVERY.capMs);
      }
    }
  }

  async #recover(error: unknown, recovery: WatchRecovery): Promise<WatchRecovery> {
    this.#signal.throwIfAborted();
    if (!recovery.quiet) this.#reportError(error);
    if (recovery.backOff) await this.#backOff(error);
    return recovery;
  }

  async #backOff(error: unknown): Promise<void> {
    await this.#sleep(this.#backoff.nextDelayMs(error));
  }

  #sleep(ms: number): Promise<void> {
    const { sleep = sleepMs } = this.#options;
    return sleep(ms, this.#signal);
  }

  #reportError(error: unknown): void {
    this.#options.onError?.(ensureError(error));
  }
}
