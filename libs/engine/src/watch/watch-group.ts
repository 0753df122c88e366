import { compareResourceVersions, resourceId, type ApiObject } from "@konverge/core";
import {
  matchesLabels,
  parseLabelSelector,
  type NamespacedName,
  type ObjectSelection,
  type Reflector,
} from "@konverge/kube";
import type { ObjectStore, StoreScope, WatchedObjects } from "../access/object-store.ts";
import type { GroupScope } from "./scope-of.ts";

/** A watch of one namespace, or of all. */
export interface GroupWatch {
  readonly reflector: Reflector<ApiObject>;
  readonly store: ObjectStore;
  /** True if the API server has forbidden it. */
  readonly isDenied: boolean;
  /** Ends the watch and the use of its cache. */
  stop(): Promise<void>;
}

/** The watches of one scope: one for all namespaces, or one for each. */
export class WatchGroup implements WatchedObjects {
  readonly scope: GroupScope;
  readonly #open: (scope: StoreScope) => GroupWatch;
  readonly #watches = new Map<string | undefined, GroupWatch>();
  /** The current namespaces. Undefined: all. */
  readonly #namespaces: Set<string> | undefined;
  #isStarted = false;

  /** @param open starts one watch */
  constructor(scope: GroupScope, open: (scope: StoreScope) => GroupWatch) {
    this.scope = scope;
    this.#open = open;
    if (this.isFollowing) this.#namespaces = new Set();
    else this.#namespaces = scope.namespaces && new Set(scope.namespaces);
  }

  get id(): string {
    return resourceId(this.scope.type);
  }

  get isStarted(): boolean {
    return this.#isStarted;
  }

  /** True if its namespaces are selected by labels. */
  get isFollowing(): boolean {
    return this.scope.namespaceLabels.length > 0;
  }

  /** True if the API server has forbidden every watch. */
  get isDenied(): boolean {
    return this.#watches.size > 0 && [...this.#watches.values()].every((each) => each.isDenied);
  }

  start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    for (const namespace of this.#namespaces ?? [undefined]) this.#watch(namespace);
  }

  /** True if the namespaces of the scope include a Namespace with these labels. */
  accepts({ metadata }: ApiObject): boolean {
    const { namespaces, namespaceLabels } = this.scope;
    if (namespaces?.includes(metadata.name) === false) return false;
    return namespaceLabels.every((text) => {
      const selector = parseLabelSelector(text);
      return selector !== undefined && matchesLabels(selector, metadata.labels);
    });
  }

  /** Adds a namespace to a group that follows them. */
  enter(namespace: string): void {
    this.#namespaces?.add(namespace);
    if (this.#isStarted) this.#watch(namespace);
  }

  /** Removes a namespace. Returns its watch, which the caller stops; undefined if there is none. */
  leave(namespace: string): GroupWatch | undefined {
    const watch = this.#watches.get(namespace);
    this.#namespaces?.delete(namespace);
    this.#watches.delete(namespace);
    return watch;
  }

  /**
   * Resolves after the first list of each watch. In a group that follows namespaces, one without permission or one that leaves
   * does not delay the others.
   */
  get synced(): Promise<void> {
    const waits = [...this.#watches.values()].map(({ store }) =>
      this.isFollowing ? Promise.race([store.unavailable, store.synced]) : store.synced,
    );
    return Promise.all(waits).then(() => undefined);
  }

  /** The version that all watches have reached. */
  get lastVersion(): string | undefined {
    return this.#all.map(({ lastVersion }) => lastVersion).reduce(older, undefined);
  }

  list(selection?: ObjectSelection): ApiObject[] {
    return this.#all.flatMap((reflector) => reflector.list(selection));
  }

  get(namespace: string | undefined, name: string): ApiObject | undefined {
    return this.#watchOf(namespace)?.reflector.get(namespace, name);
  }

  /** The store with all objects of a namespace, or of all namespaces; undefined if it is outside of the scope. */
  storeOf(namespace: string | undefined): ObjectStore | undefined {
    return this.#watchOf(namespace)?.store;
  }

  /** False if the objects of a namespace are not all known, because it is new or must not be watched. */
  isListed(namespace: string | undefined): boolean {
    return !this.has(namespace) || this.#watchOf(namespace)?.reflector.lastVersion !== undefined;
  }

  /** The version that the watch for a namespace has reached; for a cluster-scoped object, the one that all have reached. */
  versionIn(namespace: string | undefined): string | undefined {
    return this.#watchOf(namespace)?.reflector.lastVersion ?? this.lastVersion;
  }

  has(namespace: string | undefined): boolean {
    if (this.#namespaces === undefined) return true;
    return namespace !== undefined && this.#namespaces.has(namespace);
  }

  /**
   * False for an object that is outside of the scope, as far as it is known: an object that appears later is requested for its own
   * event.
   */
  mayHave({ namespace, name }: NamespacedName): boolean {
    const { labels, fields } = this.scope;
    if (!this.has(namespace)) return false;
    const isSelective = labels !== undefined || fields !== undefined;
    return !isSelective || this.get(namespace, name) !== undefined;
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#watches.values()].map((watch) => watch.stop()));
  }

  get #all(): Reflector<ApiObject>[] {
    return [...this.#watches.values()].map(({ reflector }) => reflector);
  }

  #watchOf(namespace: string | undefined): GroupWatch | undefined {
    return this.#watches.get(this.#namespaces === undefined ? undefined : namespace);
  }

  #watch(namespace: string | undefined): void {
    const { type, labels, fields } = this.scope;
    this.#watches.set(namespace, this.#open({ type, namespace, labels, fields }));
  }
}

function older(
  oldest: string | undefined,
  version: string | undefined,
  index: number,
): string | undefined {
  if (index === 0 || oldest === undefined || version === undefined) {
    return index === 0 ? version : undefined;
  }
  return (compareResourceVersions(version, oldest) ?? 0) < 0 ? version : oldest;
}
