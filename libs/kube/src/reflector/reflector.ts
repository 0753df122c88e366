import {
  defined,
  nextDelay,
  ensureError,
  isKonvergeError,
  KonvergeError,
  sleepMs,
  type ApiObject,
  type BackoffPolicy,
  type ResourceType,
} from "@konverge/core";
import type { KubeClient } from "../contract/kube-client.ts";
import { createReflectorStore, type ObjectEvent } from "./reflector-store.ts";
import type { NamespacedName } from "../names/resource-path.ts";
import { recoverList, recoverWatch, type WatchRecovery } from "./watch-failure.ts";

export interface ReflectorEvent<T> extends ObjectEvent<T> {
  /** From the first list, so nothing happened just now. */
  readonly initial: boolean;
  /** The change is in any state at this version or later; also a deletion that only a list told. */
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
   * Told of each change, in order per object. It is awaited: a change is seen only when this resolves, and told again
   * until it does (P1). Must not wait for the reflector's own `stop`.
   */
  readonly onEvent: (event: ReflectorEvent<T>) => void | Promise<void>;
  /** What is kept of each object, and told; name, uid and version must stay. Default: all of it. */
  readonly trim?: (object: T) => T;
  /** After the first list. */
  readonly onSynced?: () => void;
  /** Told of each failure that is more than the daily life of a watch. The reflector goes on by itself. */
  readonly onError?: (error: Error) => void;
  /** When the server ends each watch. Default: random in [300, 600). */
  readonly timeoutSeconds?: number;
  /** A watch that says nothing for this long is cut. Default: 5 s after the server should have ended it. */
  readonly silentMs?: number;
  readonly random?: () => number;
  /** Monotonic, in ms. */
  readonly clock?: () => number;
  readonly sleep?: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/** A local copy of all objects of a type, kept up to date by list and watch. */
export interface Reflector<T extends ApiObject> {
  start(): void;
  /** Resolves when the first list has been told; rejects when stopped before. */
  readonly synced: Promise<void>;
  /** Ends the watch; waits for the change that is being told. */
  stop(): Promise<void>;
  /** Frozen; undefined when there is none. */
  get(namespace: string | undefined, name: string): T | undefined;
  list(): T[];
  /** Everything up to this version has been seen; undefined before the first list. */
  readonly lastVersion: string | undefined;
  /** Since the server last said anything, in ms; `Infinity` before it did. Bookmarks come about once a minute. */
  readonly ageMs: number;
}

/** client-go's reflector backoff: 800 ms to 30 s, each up to twice as long. */
const BACKOFF: BackoffPolicy = {
  baseMs: 800,
  factor: 2,
  capMs: 30_000,
  steps: Infinity,
  jitter: { kind: "proportional", share: 1 },
};
/** Without a failure for this long the backoff begins anew. */
const BACKOFF_RESET_MS = 120_000;
/** Between tries to tell one change. Short: while it lasts nothing else is seen. */
const EMIT_AGAIN: BackoffPolicy = {
  baseMs: 100,
  factor: 2,
  capMs: 10_000,
  steps: Infinity,
  jitter: { kind: "equal" },
};
/** A watch that ends sooner without an event is as good as refused. */
const SHORT_WATCH_MS = 1_000;
/** Changes of one list told at once; they are about different objects. */
const TOLD_AT_ONCE = 16;

export function createReflector<T extends ApiObject>(options: ReflectorOptions<T>): Reflector<T> {
  const { client, type, onEvent, onSynced, onError = () => undefined } = options;
  const { random = Math.random, clock = () => performance.now(), sleep = sleepMs } = options;
  const { namespace, labelSelector, fieldSelector } = options;
  const selection = {
    ...defined({ namespace, labelSelector, fieldSelector }),
  };
  const store = createReflectorStore<T>(options.trim);
  const stopping = new AbortController();
  const { signal } = stopping;
  const firstList = Promise.withResolvers<void>();
  // Not everybody waits for it, and to stop early is no mistake.
  firstList.promise.catch(() => undefined);
  let synced = false;
  let lastVersion: string | undefined;
  let heardAtMs = -Infinity;
  let failures = { count: 0, lastAtMs: -Infinity };
  let running: Promise<void> | undefined;

  const emit = async (
    event: ObjectEvent<T>,
    { initial, version }: Pick<ReflectorEvent<T>, "initial" | "version">,
  ): Promise<void> => {
    store.commit(event);
    for (let retry = 0; ; retry++) {
      try {
        await onEvent({ ...event, initial, version });
        return;
      } catch (error) {
        signal.throwIfAborted();
        onError(ensureError(error));
        const step = nextDelay(EMIT_AGAIN, retry, random);
        await sleep(step.kind === "wait" ? step.afterMs : EMIT_AGAIN.capMs, signal);
      }
    }
  };
  const backOff = async (error: unknown): Promise<void> => {
    const nowMs = clock();
    if (nowMs - failures.lastAtMs > BACKOFF_RESET_MS) failures = { count: 0, lastAtMs: nowMs };
    const step = nextDelay(BACKOFF, failures.count, random);
    failures = { count: failures.count + 1, lastAtMs: nowMs };
    const wishMs = isKonvergeError(error) ? (error.retryAfterMs ?? 0) : 0;
    await sleep(Math.max(step.kind === "wait" ? step.afterMs : BACKOFF.capMs, wishMs), signal);
  };
  const recover = async (error: unknown, recovery: WatchRecovery): Promise<WatchRecovery> => {
    signal.throwIfAborted();
    if (!recovery.quiet) onError(ensureError(error));
    if (recovery.backOff) await backOff(error);
    return recovery;
  };

  const listOnce = async (resourceVersion: string): Promise<void> => {
    const { items, resourceVersion: listedAt } = await client.list(type, {
      ...selection,
      signal,
      // At a version the whole list comes from the watch cache in one piece; only the newest state is paged.
      ...(resourceVersion === "" ? {} : { resourceVersion, limit: 0 }),
    });
    heardAtMs = clock();
    const groups = store.eventsOfList(items)[Symbol.iterator]();
    const initial = !synced;
    const teller = async (): Promise<void> => {
      for (const group of groups) {
        for (const event of group) await emit(event, { initial, version: listedAt });
      }
    };
    await Promise.all(Array.from({ length: TOLD_AT_ONCE }, teller));
    lastVersion = listedAt;
    if (synced) return;
    synced = true;
    firstList.resolve();
    onSynced?.();
  };
  const list = async (versionLost: boolean): Promise<void> => {
    let version = versionLost ? "" : (lastVersion ?? "0");
    for (;;) {
      try {
        await listOnce(version);
        return;
      } catch (error) {
        const recovery = await recover(error, recoverList(error, version));
        if (recovery.versionLost) version = "";
      }
    }
  };
  const watchOnce = async (fresh: boolean): Promise<WatchRecovery | undefined> => {
    const beganAtMs = clock();
    let events = 0;
    try {
      const watch = client.watch(type, {
        ...selection,
        signal,
        timeoutSeconds: options.timeoutSeconds ?? 300 + Math.floor(random() * 300),
        ...defined({ silentMs: options.silentMs, resourceVersion: lastVersion }),
      });
      for await (const event of watch) {
        events += 1;
        heardAtMs = clock();
        if (event.kind === "bookmark") {
          if (event.resourceVersion !== "") lastVersion = event.resourceVersion;
          continue;
        }
        const version = event.object.metadata.resourceVersion ?? lastVersion ?? "";
        for (const change of store.eventsOf(event)) await emit(change, { initial: false, version });
        lastVersion = version;
      }
      if (events === 0 && clock() - beganAtMs < SHORT_WATCH_MS) await backOff(undefined);
      return undefined;
    } catch (error) {
      const lived = events > 0 || clock() - beganAtMs >= SHORT_WATCH_MS;
      return recover(error, recoverWatch(error, { lived, fresh }));
    }
  };
  const run = async (): Promise<void> => {
    await list(false);
    for (let fresh = true; ;) {
      signal.throwIfAborted();
      const recovery = await watchOnce(fresh);
      fresh = recovery?.next === "list";
      if (fresh) await list(recovery?.versionLost ?? false);
    }
  };

  return {
    start() {
      running ??= run().catch((error: unknown) => {
        if (!signal.aborted) onError(ensureError(error));
        firstList.reject(error);
      });
    },
    synced: firstList.promise,
    async stop() {
      const reason = new KonvergeError("cancelled", `the reflector of ${type.resource} is stopped`);
      stopping.abort(reason);
      firstList.reject(reason);
      await running;
    },
    get: (inNamespace, name) =>
      store.get(
        inNamespace === undefined
          ? { name }
          : ({ namespace: inNamespace, name } satisfies NamespacedName),
      ),
    list: () => store.list(),
    get lastVersion() {
      return lastVersion;
    },
    get ageMs() {
      return clock() - heardAtMs;
    },
  };
}
