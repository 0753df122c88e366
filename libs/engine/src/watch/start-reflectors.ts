import { resourceId, type ApiObject, type ResourceType, type WorkerRole } from "@konverge/core";
import { createReflector, isForbidden, type KubeClient, type Reflector } from "@konverge/kube";
import type { Metrics } from "@konverge/telemetry";
import type { Controller } from "../define/define-controller.ts";
import type { Log } from "../define/log.ts";
import type { KnownVersion, RequestSource, SeenChange } from "./request-source.ts";

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
  /** Receives 403 responses, which repeat until a role is changed. */
  readonly onForbidden: (error: Error) => void;
}

/** The watches of a process, by resource id. */
export interface Reflectors {
  /** Undefined for a kind of no controller. A watch that only a handler's list needs is started by the first such list. */
  get(id: string): Reflector<ApiObject> | undefined;
  /** True if the watch was started. */
  has(id: string): boolean;
  /** Resolves after the first list of every started watch. */
  synced(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts one watch per kind and process, shared by all controllers. A process that never leads does not watch the reconciled
 * kinds themselves: attempts read their object from the API server.
 */
export function startReflectors(
  parts: readonly Watcher[],
  { client, log, metrics, role, onForbidden }: StartReflectorsOptions,
): Reflectors {
  const types = new Map<string, ResourceType>();
  const atOnce = new Set<string>();
  for (const { controller } of parts) {
    for (const { type } of controller.sources) {
      types.set(resourceId(type), type);
      if (type !== controller.for || role !== "work") atOnce.add(resourceId(type));
    }
  }
  const reflectors = new Map<string, Reflector<ApiObject>>();
  const start = (id: string, type: ResourceType): Reflector<ApiObject> => {
    const reflector = createReflector<ApiObject>({
      client,
      type,
      onEvent: (change) =>
        dispatch(parts, reflectors, id, { ...change, seen: { [id]: change.version } }),
      onError: (error) => {
        metrics.watchInterrupted(id);
        log.warn({ err: error, resource: id }, "watch interrupted");
        if (isForbidden(error)) onForbidden(error);
      },
    });
    metrics.addWatch(id);
    reflector.start();
    reflectors.set(id, reflector);
    return reflector;
  };
  for (const [id, type] of types) if (atOnce.has(id)) start(id, type);
  let stopped = false;
  return {
    get(id) {
      const type = types.get(id);
      return reflectors.get(id) ?? (type === undefined || stopped ? undefined : start(id, type));
    },
    has: (id) => reflectors.has(id),
    async synced() {
      await Promise.all([...reflectors.values()].map(({ synced }) => synced));
    },
    async stop() {
      stopped = true;
      await Promise.all([...reflectors.values()].map((reflector) => reflector.stop()));
    },
  };
}

/** Only the leader enqueues; other processes keep their caches current. */
function dispatch(
  parts: readonly Watcher[],
  reflectors: ReadonlyMap<string, Reflector<ApiObject>>,
  id: string,
  change: SeenChange,
): void {
  for (const { controller, source, leading } of parts) {
    if (!leading) continue;
    const ownId = resourceId(controller.for);
    const known: KnownVersion = ({ namespace, name }) =>
      reflectors.get(ownId)?.get(namespace, name)?.metadata.resourceVersion;
    for (const watched of controller.sources) {
      if (resourceId(watched.type) === id) source.onChange(watched, change, known);
    }
  }
}
