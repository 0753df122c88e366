import type { ApiObject, ResourceType } from "@konverge/core";
import { createReflector, type KubeClient, type Reflector } from "@konverge/kube";
import type { Metrics } from "@konverge/telemetry";
import type { Controller } from "./define-controller.ts";
import type { Log } from "./log.ts";
import { typeId } from "./object-cache.ts";
import type { RequestSource, SeenChange } from "./request-source.ts";

/** A controller that is told of what the watches see. */
export interface Watcher {
  readonly controller: Controller;
  readonly source: RequestSource;
  /** True while this process is its elected producer. */
  readonly leading: boolean;
}

interface StartReflectorsOptions {
  readonly client: KubeClient;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** By the id of their kind. */
export type ReflectorMap = ReadonlyMap<string, Reflector<ApiObject>>;

/** One watch per kind and process, however many controllers look at it. */
export function startReflectors(
  parts: readonly Watcher[],
  { client, log, metrics }: StartReflectorsOptions,
): ReflectorMap {
  const types = new Map<string, ResourceType>();
  for (const { controller } of parts) {
    for (const type of [
      controller.for,
      ...controller.owns,
      ...controller.watches.map((watch) => watch.type),
    ]) {
      types.set(typeId(type), type);
    }
  }
  const reflectors = new Map<string, Reflector<ApiObject>>();
  for (const [id, type] of types) {
    const reflector = createReflector<ApiObject>({
      client,
      type,
      onEvent: (change) => dispatch(parts, id, change),
      onError: (error) => {
        metrics.watchInterrupted(id);
        log.warn({ err: error, resource: id }, "watch interrupted");
      },
    });
    metrics.addWatch(id);
    reflector.start();
    reflectors.set(id, reflector);
  }
  return reflectors;
}

/** Only the elected producer requests; the others keep their caches warm. */
async function dispatch(parts: readonly Watcher[], id: string, change: SeenChange): Promise<void> {
  const requests: Promise<void>[] = [];
  for (const { controller, source, leading } of parts) {
    if (!leading) continue;
    if (typeId(controller.for) === id) requests.push(source.onOwnKind(change));
    if (controller.owns.some((type) => typeId(type) === id)) requests.push(source.onOwned(change));
    for (const watch of controller.watches) {
      if (typeId(watch.type) === id) requests.push(source.onWatched(watch, change));
    }
  }
  await Promise.all(requests);
}
