import { compareResourceVersions, defined, KonvergeError, type ApiObject } from "@konverge/core";
import {
  createReflector,
  ignoreNotFound,
  isForbidden,
  onlyMetadata,
  type KubeClient,
  type Reflector,
} from "@konverge/kube";
import { Namespace } from "@konverge/kube/kinds";
import type { MembershipQuery } from "../access/membership-query.ts";
import type { Log } from "../define/log.ts";
import type { WatchGroup } from "./watch-group.ts";

const NamespaceMetadata = onlyMetadata(Namespace);

export interface NamespaceWatchOptions {
  readonly client: KubeClient;
  readonly log: Log;
  /** Label selector of all namespaces that matter to this process. Undefined: the groups have different ones. */
  readonly labelSelector: string | undefined;
  /** Groups with label selectors of namespaces. */
  readonly groups: readonly WatchGroup[];
  readonly onEnter: (group: WatchGroup, namespace: string) => void;
  /** `version`: a namespace watch at this version or later has seen it. */
  readonly onLeave: (groups: readonly WatchGroup[], namespace: string, version: string) => void;
  readonly onError: (error: Error) => void;
  readonly onForbidden: (error: Error) => void;
}

/** Follows the namespaces that groups select by labels: those that appear, change their labels, or are deleted. */
export class NamespaceWatch {
  readonly #reflector: Reflector<ApiObject>;

  constructor(options: NamespaceWatchOptions) {
    const { client, labelSelector, log, onError, onForbidden } = options;
    let isSynced = false;
    this.#reflector = createReflector<ApiObject>({
      client,
      type: NamespaceMetadata,
      ...defined({ labelSelector }),
      trim: withLabels,
      onEvent: ({ kind, object, version }) => {
        const { name } = object.metadata;
        const isIn = (group: WatchGroup) => kind !== "deleted" && group.accepts(object);
        const entered = options.groups.filter((group) => isIn(group) && !group.has(name));
        const left = options.groups.filter((group) => !isIn(group) && group.has(name));
        if (isSynced && entered.length > 0) log.info({ namespace: name }, "namespace watched");
        if (left.length > 0) log.info({ namespace: name }, "namespace no longer watched");
        for (const group of entered) options.onEnter(group, name);
        if (left.length > 0) options.onLeave(left, name, version);
      },
      onSynced: () => {
        isSynced = true;
      },
      onError: (error) => {
        onError(error);
        if (isForbidden(error)) onForbidden(explained(error));
      },
    });
  }

  start(): void {
    this.#reflector.start();
  }

  get synced(): Promise<void> {
    return this.#reflector.synced;
  }

  get lastVersion(): string | undefined {
    return this.#reflector.lastVersion;
  }

  /**
   * Reads the Namespace if this process may not have seen its last change: an attempt that drops the request for an object in a
   * new namespace would lose it.
   */
  async isIn(
    group: WatchGroup,
    namespace: string,
    { atLeast, client }: MembershipQuery,
  ): Promise<boolean> {
    const isKnown = group.has(namespace);
    const isCurrent =
      atLeast === undefined
        ? isKnown
        : (compareResourceVersions(this.lastVersion ?? "", atLeast) ?? -1) >= 0;
    if (isCurrent) return isKnown;
    const found = await client.get(NamespaceMetadata, { name: namespace }).catch(ignoreNotFound);
    return found !== undefined && group.accepts(found);
  }

  async stop(): Promise<void> {
    await this.#reflector.stop();
  }
}

function withLabels({ apiVersion, kind, metadata }: ApiObject): ApiObject {
  const { name, uid, resourceVersion, labels } = metadata;
  return { apiVersion, kind, metadata: { name, ...defined({ uid, resourceVersion, labels }) } };
}

function explained(error: Error): KonvergeError {
  const message = `namespaces cannot be selected by labels without list and watch of namespaces (${error.message}); apply the roles that "konverge manifests" prints, or list the namespaces by name`;
  return new KonvergeError("forbidden", message, { cause: error });
}
