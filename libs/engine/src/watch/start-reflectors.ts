import {
  defined,
  resourceId,
  type ApiObject,
  type ResourceType,
  type WorkerRole,
} from "@konverge/core";
import {
  createReflector,
  isForbidden,
  type IndexFunction,
  type KubeClient,
  type NamespacedName,
} from "@konverge/kube";
import { Namespace } from "@konverge/kube/kinds";
import type { Metrics } from "@konverge/telemetry";
import { withoutOtherManagers } from "../access/child-mark.ts";
import { indexErrorFields } from "../access/index-error-fields.ts";
import type { MembershipQuery } from "../access/membership-query.ts";
import type { ObjectStore, ObjectStores, StoreScope } from "../access/object-store.ts";
import type { Controller } from "../define/define-controller.ts";
import type { Log } from "../define/log.ts";
import { isByLabels, type NamespaceSelection } from "../define/namespace-selection.ts";
import type { ControllerSource } from "../define/source.ts";
import { NamespaceWatch } from "./namespace-watch.ts";
import type { MissedChanges } from "./missed-changes.ts";
import type { KnownVersion, RequestSource, SeenChange } from "./request-source.ts";
import { scopeOf, type GroupScope } from "./scope-of.ts";
import { WatchGroup, type GroupWatch } from "./watch-group.ts";

const NAMESPACES = resourceId(Namespace);

/** A controller that receives the changes of the watches. */
export interface Watcher {
  readonly controller: Controller;
  readonly source: RequestSource;
  /** True while this process leads the controller. */
  readonly leading: boolean;
  /** Keeps the changes that another leader has to request. */
  readonly missed: MissedChanges;
}

interface StartReflectorsOptions {
  readonly client: KubeClient;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly role: WorkerRole;
  /** The namespaces that this process may access. Undefined: all. */
  readonly namespaces: NamespaceSelection | undefined;
  /** Receives 403 responses, which repeat until a role is changed. */
  readonly onForbidden: (error: Error) => void;
}

/** The watches of a process. */
export interface Reflectors extends ObjectStores {
  /** The watches for a source of a controller. */
  groupOf(source: ControllerSource): WatchGroup;
  /** The version that the watch of namespaces has reached; undefined if none are selected by labels. */
  readonly namespaceVersion: string | undefined;
  /** True if the namespace is in the scope of a source. May read the Namespace. */
  isInScope(
    source: ControllerSource,
    namespace: string,
    query: MembershipQuery,
  ): boolean | Promise<boolean>;
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
  const reflectors = new SharedReflectors(parts, options);
  reflectors.start();
  return reflectors;
}

class SharedReflectors implements Reflectors {
  readonly #options: StartReflectorsOptions;
  readonly #subscriptions = new Map<WatchGroup, Subscription[]>();
  readonly #groups = new Map<string, WatchGroup>();
  readonly #groupBySource = new Map<ControllerSource, WatchGroup>();
  readonly #namespaces: NamespaceWatch | undefined;
  /** Watches of namespaces that have left, while they end. */
  readonly #ending = new Set<Promise<void>>();
  #isStopped = false;

  constructor(parts: readonly Watcher[], options: StartReflectorsOptions) {
    this.#options = options;
    const keyOf = createScopeKeys();
    for (const part of parts) {
      for (const source of part.controller.sources) {
        const scope = scopeOf(source, options.namespaces);
        const group = this.#groups.get(keyOf(scope)) ?? this.#addGroup(keyOf(scope), scope);
        this.#groupBySource.set(source, group);
        this.#subscribersOf(group).push({ part, source });
      }
    }
    this.#namespaces = this.#followNamespaces();
  }

  start(): void {
    this.#namespaces?.start();
    if (this.#options.role === "work") return;
    for (const group of this.#groups.values()) group.start();
  }

  groupOf(source: ControllerSource): WatchGroup {
    const group = this.#groupBySource.get(source);
    if (group === undefined)
      throw new TypeError("the source belongs to no controller of this process");
    return group;
  }

  get namespaceVersion(): string | undefined {
    return this.#namespaces?.lastVersion;
  }

  isInScope(
    source: ControllerSource,
    namespace: string,
    query: MembershipQuery,
  ): boolean | Promise<boolean> {
    const group = this.groupOf(source);
    if (this.#namespaces === undefined || !group.isFollowing) return group.has(namespace);
    return this.#namespaces.isIn(group, namespace, query);
  }

  find(
    type: ResourceType,
    namespace: string | undefined,
    accepts: (scope: StoreScope) => boolean,
  ): ObjectStore | undefined {
    const found = this.#groupsOf(type).find(
      (group) => group.has(namespace) && accepts({ ...group.scope, namespace }),
    );
    if (found !== undefined && !this.#isStopped) found.start();
    return found?.storeOf(namespace);
  }

  started(type: ResourceType, namespace: string | undefined): readonly ObjectStore[] {
    return this.#groupsOf(type)
      .map((group) => group.storeOf(namespace))
      .filter((store) => store !== undefined);
  }

  async synced(): Promise<void> {
    // The groups have their namespaces after it.
    await this.#namespaces?.synced;
    const started = [...this.#groups.values()].filter(({ isStarted }) => isStarted);
    await Promise.all(started.map(({ synced }) => synced));
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#namespaces?.stop();
    await Promise.all([...this.#groups.values()].map((group) => group.stop()));
    await Promise.all(this.#ending);
  }

  #addGroup(key: string, scope: GroupScope): WatchGroup {
    const group: WatchGroup = new WatchGroup(scope, (each) => this.#openWatch(group, each));
    this.#groups.set(key, group);
    this.#subscriptions.set(group, []);
    return group;
  }

  #subscribersOf(group: WatchGroup): Subscription[] {
    return this.#subscriptions.get(group) ?? [];
  }

  #groupsOf(type: ResourceType): WatchGroup[] {
    return [...this.#groups.values()].filter(({ id }) => id === resourceId(type));
  }

  #followNamespaces(): NamespaceWatch | undefined {
    const groups = [...this.#groups.values()].filter(({ isFollowing }) => isFollowing);
    if (groups.length === 0) return undefined;
    const { client, log, metrics, namespaces, onForbidden } = this.#options;
    return new NamespaceWatch({
      client,
      log,
      labelSelector: isByLabels(namespaces) ? namespaces.labels : undefined,
      groups,
      onEnter: (group, namespace) => group.enter(namespace),
      onLeave: (left, namespace, version) => this.#leave(left, namespace, version),
      onError: (error) => {
        metrics.watchInterrupted(NAMESPACES);
        log.warn({ err: error, resource: NAMESPACES }, "watch interrupted");
      },
      onForbidden,
    });
  }

  /** Drops the caches of a namespace, then requests what its objects concern, as if they were deleted. */
  #leave(groups: readonly WatchGroup[], namespace: string, version: string): void {
    const watches = groups.map((group) => ({ group, watch: group.leave(namespace) }));
    for (const { group, watch } of watches) {
      if (watch === undefined) continue;
      const ending = watch.stop().finally(() => this.#ending.delete(ending));
      this.#ending.add(ending);
      const seen = { [NAMESPACES]: version };
      for (const object of watch.reflector.list()) {
        this.#dispatch(group, { kind: "deleted", object, previous: object, seen }, (part) =>
          part.source.leave(object, seen),
        );
      }
    }
  }

  #openWatch(group: WatchGroup, scope: StoreScope): GroupWatch {
    const { client, log, metrics, onForbidden } = this.#options;
    const { id } = group;
    const subscribed = this.#subscribersOf(group);
    const indexing = indexingOf(subscribed, this.#options);
    const unavailable = Promise.withResolvers<void>();
    let isDropped = false;
    let isDenied = false;
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
        if (isDropped) return;
        this.#dispatch(group, { ...change, seen: { [id]: change.version } });
      },
      onError: (error) => {
        metrics.watchInterrupted(id);
        const { namespace } = scope;
        log.warn({ err: error, resource: id, ...defined({ namespace }) }, "watch interrupted");
        if (!isForbidden(error)) return;
        isDenied = true;
        unavailable.resolve();
        // In a group that follows namespaces, a role in a new one may come later than its label.
        if (!group.isFollowing || group.isDenied) onForbidden(error);
      },
    });
    const removeWatch = metrics.addWatch(id, () => reflector.measure());
    reflector.start();
    const store: ObjectStore = {
      scope,
      synced: reflector.synced,
      unavailable: unavailable.promise,
      indexes: indexing.indexes,
      get lastVersion() {
        return reflector.lastVersion;
      },
      list: (selection) => reflector.list(selection),
      get: (namespace, name) => reflector.get(namespace, name),
    };
    const stop = async () => {
      isDropped = true;
      unavailable.resolve();
      removeWatch();
      await reflector.stop();
    };
    return {
      reflector,
      store,
      get isDenied() {
        return isDenied && reflector.lastVersion === undefined;
      },
      stop,
    };
  }

  /** Passes a change to the controllers that this process leads. The others keep it for the case that they become the leader. */
  #dispatch(
    group: WatchGroup,
    change: Omit<SeenChange, "initial"> & { readonly initial?: boolean },
    /** Replaces the request for the object itself. */
    requestItself?: (part: Watcher) => void,
  ): void {
    for (const { part, source } of this.#subscribersOf(group)) {
      const request = () => this.#request(part, source, change, requestItself);
      if (part.leading) request();
      else if (change.initial !== true) {
        part.missed.add(
          part.controller.sources.indexOf(source),
          change.seen[group.id] ?? "",
          request,
        );
      }
    }
  }

  #request(
    part: Watcher,
    source: ControllerSource,
    change: Omit<SeenChange, "initial"> & { readonly initial?: boolean },
    requestItself: ((part: Watcher) => void) | undefined,
  ): void {
    if (requestItself !== undefined && source.option === "for") return requestItself(part);
    const own = this.groupOf(part.controller.sources[0]);
    const known: KnownVersion = ({ namespace, name }) =>
      own.get(namespace, name)?.metadata.resourceVersion;
    const isOutside = (name: NamespacedName) => !own.mayHave(name);
    part.source.onChange(source, { initial: false, ...change }, known, isOutside);
  }
}

/** Returns equal keys for equal scopes. */
function createScopeKeys(): (scope: GroupScope) => string {
  const functions = new Map<unknown, number>();
  return ({ type, ...selection }) => {
    const { keep } = type;
    if (typeof keep === "function" && !functions.has(keep)) functions.set(keep, functions.size);
    const kept = typeof keep === "function" ? functions.get(keep) : keep;
    return JSON.stringify([resourceId(type), type.version, kept, Object.entries(selection)]);
  };
}

function selectionOf({ type, namespace, labels, fields }: StoreScope) {
  return {
    type,
    ...defined({ namespace, labelSelector: labels, fieldSelector: fields }),
  };
}

/** If an index function throws, the object has no value in the index, and the error is logged and counted. */
function indexingOf(
  subscribed: readonly Subscription[],
  { client, log, metrics }: Pick<StartReflectorsOptions, "client" | "log" | "metrics">,
) {
  const named = new Map(
    subscribed.flatMap(({ part, source }) =>
      Object.entries(source.indexes ?? {}).map(
        ([name, index]) => [index, { name, controller: part.controller.name, source }] as const,
      ),
    ),
  );
  return {
    indexes: [...named.keys()],
    onIndexError: (error: unknown, object: ApiObject, index: IndexFunction) => {
      const found = named.get(index);
      if (found === undefined) return;
      const { name, controller, source } = found;
      metrics.watchFunctionFailed(controller, "index");
      const isSensitive = client.isSensitive(source.type);
      const fields = indexErrorFields(object, { error, index: name, isSensitive });
      log.error({ controller, ...fields }, "index function threw");
    },
  };
}
