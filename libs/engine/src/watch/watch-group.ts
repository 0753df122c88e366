import {
  compareResourceVersions,
  resourceId,
  type ApiObject,
  type ResourceType,
} from "@konverge/core";
import type { NamespacedName, ObjectSelection, Reflector } from "@konverge/kube";
import type { ObjectStore, StoreScope, WatchedObjects } from "../access/object-store.ts";

/** The objects of a kind that a source needs. Sources with equal scopes share their watches. */
export interface GroupScope {
  readonly type: ResourceType;
  /** Undefined: one watch for all namespaces. */
  readonly namespaces: readonly string[] | undefined;
  readonly labels: string | undefined;
  readonly fields: string | undefined;
}

/** A watch of one namespace, or of all. */
export interface GroupWatch {
  readonly reflector: Reflector<ApiObject>;
  readonly store: ObjectStore;
}

/** The watches of one scope: one for all namespaces, or one for each. */
export class WatchGroup implements WatchedObjects {
  readonly scope: GroupScope;
  readonly #open: (scope: StoreScope) => GroupWatch;
  readonly #watches = new Map<string | undefined, GroupWatch>();

  /** @param open starts one watch */
  constructor(scope: GroupScope, open: (scope: StoreScope) => GroupWatch) {
    this.scope = scope;
    this.#open = open;
  }

  get id(): string {
    return resourceId(this.scope.type);
  }

  get isStarted(): boolean {
    return this.#watches.size > 0;
  }

  start(): void {
    if (this.isStarted) return;
    const { namespaces = [undefined], ...scope } = this.scope;
    for (const namespace of namespaces) {
      this.#watches.set(namespace, this.#open({ ...scope, namespace }));
    }
  }

  get synced(): Promise<void> {
    return Promise.all(this.#all.map(({ synced }) => synced)).then(() => undefined);
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

  /** The version that the watch for a namespace has reached; for a cluster-scoped object, the one that all have reached. */
  versionIn(namespace: string | undefined): string | undefined {
    return this.#watchOf(namespace)?.reflector.lastVersion ?? this.lastVersion;
  }

  has(namespace: string | undefined): boolean {
    const { namespaces } = this.scope;
    return namespaces === undefined || (namespace !== undefined && namespaces.includes(namespace));
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
    await Promise.all(this.#all.map((reflector) => reflector.stop()));
  }

  get #all(): Reflector<ApiObject>[] {
    return [...this.#watches.values()].map(({ reflector }) => reflector);
  }

  #watchOf(namespace: string | undefined): GroupWatch | undefined {
    return this.#watches.get(this.scope.namespaces === undefined ? undefined : namespace);
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
