import {
  defined,
  resourceId,
  type ApiObject,
  type ResourceType,
  type WorkerRole,
} from "@konverge/core";
import { createReflector, isForbidden, type IndexFunction, type KubeClient } from "@konverge/kube";
import type { Metrics } from "@konverge/telemetry";
import { withoutOtherManagers } from "../access/child-mark.ts";
import type { ObjectStore, ObjectStores, StoreScope } from "../access/object-store.ts";
import type { Controller } from "../define/define-controller.ts";
import type { Log } from "../define/log.ts";
import type { ControllerSource } from "../define/source.ts";
import { errorOfThrown } from "../define/thrown-error.ts";
import type { KnownVersion, RequestSource } from "./request-source.ts";
import { WatchGroup, type GroupWatch } from "./watch-group.ts";

/** A controller that receives the changes of the watches. */
export interface Watcher {
  readonly controller: Controller;
  readonly source: RequestSource;
  /** True while this process leads the controller. */
  readonly leading: boolean;
}

interface StartReflectorsOptions {
  readonly client: KubeClient;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly role: WorkerRole;
  /** The namespaces that this process may access. Undefined: all. */
  readonly namespaces: readonly string[] | undefined;
  /** Receives 403 responses, which repeat until a role is changed. */
  readonly onForbidden: (error: Error) => void;
}

/** The watches of a process. */
export interface Reflectors extends ObjectStores {
  /** The watches for a source of a controller. */
  groupOf(source: ControllerSource): WatchGroup;
  /** Resolves after the first list of every started watch. */
  synced(): Promise<void>;
  stop(): Promise<void>;
}

/** A source of a controller, with its watches. */
interface Subscription {
  readonly part: Watcher;
  readonly source: ControllerSource;
}

/**
 * Prepares one group of watches per scope and process, shared by all sources with this scope. A process that never leads starts
 * a watch when a handler first lists from it: attempts read their object from the API server.
 */
export function startReflectors(
  parts: readonly Watcher[],
  options: StartReflectorsOptions,
): Reflectors {
  const subscriptions = new Map<string, Subscription[]>();
  const groups = new Map<string, WatchGroup>();
  const groupBySource = new Map<ControllerSource, WatchGroup>();
  const keyOf = createScopeKeys();
  for (const part of parts) {
    for (const source of part.controller.sources) {
      const scope = scopeOf(source, options.namespaces);
      const key = keyOf(scope);
      const group = groups.get(key) ?? new WatchGroup(scope, (each) => openWatch(each, key));
      groups.set(key, group);
      groupBySource.set(source, group);
      subscriptions.set(key, [...(subscriptions.get(key) ?? []), { part, source }]);
    }
  }
  const groupOf = (source: ControllerSource): WatchGroup => {
    const group = groupBySource.get(source);
    if (group === undefined)
      throw new TypeError("the source belongs to no controller of this process");
    return group;
  };

  const unobserve: (() => void)[] = [];
  const openWatch = (scope: StoreScope, key: string): GroupWatch => {
    const { client, log, metrics, onForbidden } = options;
    const id = resourceId(scope.type);
    const subscribed = subscriptions.get(key) ?? [];
    const indexing = indexingOf(subscribed, log);
    const forbidden = Promise.withResolvers<void>();
    const reflector = createReflector<ApiObject>({
      client,
      ...selectionOf(scope),
      ...indexing,
      // Records of writes name the managers of the object that they start from. A part has those that its function keeps.
      ...(typeof scope.type.keep === "function" ||
      subscribed.some(({ source }) => source.option === "for")
        ? {}
        : { trim: withoutOtherManagers }),
      onEvent: (change) => {
        const seen = { [id]: change.version };
        for (const { part, source } of subscribed) {
          // Only the leader enqueues; other processes keep their caches current.
          if (!part.leading) continue;
          const own = groupOf(part.controller.sources[0]);
          const known: KnownVersion = ({ namespace, name }) =>
            own.get(namespace, name)?.metadata.resourceVersion;
          part.source.onChange(source, { ...change, seen }, known, (name) => !own.mayHave(name));
        }
      },
      onError: (error) => {
        metrics.watchInterrupted(id);
        log.warn({ err: error, resource: id }, "watch interrupted");
        if (!isForbidden(error)) return;
        forbidden.resolve();
        onForbidden(error);
      },
    });
    unobserve.push(metrics.addWatch(id, () => reflector.measure()));
    reflector.start();
    const store: ObjectStore = {
      scope,
      synced: reflector.synced,
      forbidden: forbidden.promise,
      indexes: indexing.indexes,
      get lastVersion() {
        return reflector.lastVersion;
      },
      list: (selection) => reflector.list(selection),
      get: (namespace, name) => reflector.get(namespace, name),
    };
    return { reflector, store };
  };

  if (options.role !== "work") for (const group of groups.values()) group.start();
  let stopped = false;
  const groupsOf = (type: ResourceType): WatchGroup[] =>
    [...groups.values()].filter(({ id }) => id === resourceId(type));
  const isStarted = ({ isStarted: started }: WatchGroup): boolean => started;
  return {
    groupOf,
    find(type, namespace, accepts) {
      const found = groupsOf(type).find(
        (group) => group.has(namespace) && accepts({ ...group.scope, namespace }),
      );
      if (found !== undefined && !stopped) found.start();
      return found?.storeOf(namespace);
    },
    started: (type, namespace) =>
      groupsOf(type)
        .map((group) => group.storeOf(namespace))
        .filter((store) => store !== undefined),
    async synced() {
      await Promise.all([...groups.values()].filter(isStarted).map(({ synced }) => synced));
    },
    async stop() {
      stopped = true;
      for (const end of unobserve) end();
      await Promise.all([...groups.values()].map((group) => group.stop()));
    },
  };
}

/** The scope of a source within the namespaces that this process may access. */
export function scopeOf(
  { type, namespaces, labels, fields }: ControllerSource,
  allowed: readonly string[] | undefined,
): WatchGroup["scope"] {
  const inScope =
    type.scope === "Cluster"
      ? undefined
      : (namespaces?.filter((one) => allowed?.includes(one) ?? true) ?? allowed);
  return { type, namespaces: inScope && [...new Set(inScope)].toSorted(), labels, fields };
}

/** Returns equal keys for equal scopes. */
function createScopeKeys(): (scope: WatchGroup["scope"]) => string {
  const functions = new Map<unknown, number>();
  return ({ type, namespaces, labels, fields }) => {
    const { keep } = type;
    if (typeof keep === "function" && !functions.has(keep)) functions.set(keep, functions.size);
    const kept = typeof keep === "function" ? functions.get(keep) : keep;
    return JSON.stringify([resourceId(type), type.version, kept, namespaces, labels, fields]);
  };
}

function selectionOf({ type, namespace, labels, fields }: StoreScope) {
  return {
    type,
    ...defined({ namespace, labelSelector: labels, fieldSelector: fields }),
  };
}

/** If the index function throws, the object has no value in the index, and the error is logged. */
function indexingOf(subscribed: readonly Subscription[], log: Log) {
  const indexes: IndexFunction[] = subscribed.flatMap(({ source }) =>
    Object.values(source.indexes ?? {}),
  );
  return {
    indexes,
    onIndexError: (error: unknown, { kind }: ApiObject) => {
      // The message may hold content of the object (P12).
      log.error({ kind, err: { type: errorOfThrown(error).name } }, "index function threw");
    },
  };
}
