import { defined, KonvergeError } from "@konverge/core";
import type { KubeClient, NamespacedName } from "@konverge/kube";
import type { PlanRecord } from "@konverge/records";
import { NO_LANES } from "./access/attempt-plan.ts";
import { NO_CACHE } from "./access/attempt.ts";
import { watchLoop } from "./attempt/loop-watch.ts";
import type { Controller } from "./define/define-controller.ts";
import { reconciledKey } from "./define/reconciled-key.ts";
import type { EngineOptions } from "./engine-options.ts";
import { checkServed } from "./watch/check-served.ts";
import { MissedChanges } from "./watch/missed-changes.ts";
import type { RequestSource } from "./watch/request-source.ts";
import { assertScopes, scopeOf } from "./watch/scope-of.ts";
import { startReflectors, type Reflectors } from "./watch/start-reflectors.ts";
import { runtimeOf } from "./work-on-controller.ts";
import { runPlan, type PlanRequest } from "./plan/run-plan.ts";

export interface PlannerOptions extends Pick<
  EngineOptions,
  | "controllers"
  | "use"
  | "client"
  | "clusters"
  | "namespaces"
  | "conflictRetry"
  | "workerId"
  | "log"
  | "metrics"
> {
  /** The name of the cluster. */
  readonly cluster: string;
}

/** Plans attempts of controllers that do not run. */
export interface Planner {
  /** Names of the controllers. */
  readonly controllers: readonly string[];
  /** Plans the next attempt of an object; see {@link runPlan}. @throws KonvergeError `unknown_controller` */
  plan(request: PlanRequest): Promise<PlanRecord>;
  /** Lists the keys of the objects that a controller selects. @throws KonvergeError `unknown_controller`; KubeApiError */
  keys(
    controller: string,
    query?: { readonly namespace?: string },
  ): AsyncIterable<PlanRequest["key"]>;
  stop(): Promise<void>;
}

/** A planner leads no watches, so it requests nothing. */
const NO_REQUESTS: RequestSource = {
  onChange: () => undefined,
  leave: () => undefined,
  resync: async () => undefined,
};

/**
 * Starts controllers that only plan: without queues, leases, lanes and watches of their objects.
 * @throws KonvergeError `invalid_config` if a source can have no objects, `crd_mismatch` if the cluster does not serve a kind
 */
export async function startPlanner(options: PlannerOptions): Promise<Planner> {
  const { controllers, cluster, client, log, metrics, namespaces, workerId } = options;
  assertScopes(controllers, namespaces);
  await Promise.all(controllers.map((controller) => checkServed(controller, client, log)));
  const reflectors = await openReflectors({ controllers, client, log, metrics, namespaces });
  const loop = watchLoop(log);
  const stopping = new AbortController();
  const controllerOf = (name: string): Controller => {
    const found = controllers.find((each) => each.name === name);
    if (found !== undefined) return found;
    throw new KonvergeError("unknown_controller", `the configuration has no controller "${name}"`);
  };
  return {
    controllers: controllers.map(({ name }) => name),
    async plan(request) {
      const controller = controllerOf(request.key.controller);
      const shared = { reflectors, cache: NO_CACHE };
      const runtime = runtimeOf(controller, shared, { ...options, lanes: NO_LANES });
      const signal = AbortSignal.any([request.signal, stopping.signal]);
      return await runPlan({ ...request, signal }, { runtime, loop, log, worker: workerId });
    },
    async *keys(name, query = {}) {
      const controller = controllerOf(name);
      for await (const target of namesOf(controller, { client, namespaces, ...query })) {
        yield reconciledKey(controller, cluster, target);
      }
    },
    async stop() {
      stopping.abort(new KonvergeError("cancelled", "the planner stops"));
      loop.stop();
      await reflectors.stop();
    },
  };
}

/** Only the namespaces are watched, and only if a controller selects them by labels. */
async function openReflectors({
  controllers,
  client,
  log,
  metrics,
  namespaces,
}: Pick<PlannerOptions, "controllers" | "client" | "log" | "metrics"> & {
  readonly namespaces: PlannerOptions["namespaces"] | undefined;
}): Promise<Reflectors> {
  const forbidden = Promise.withResolvers<never>();
  forbidden.promise.catch(() => undefined);
  const parts = controllers.map((controller) => ({
    controller,
    source: NO_REQUESTS,
    leading: false,
    missed: new MissedChanges(),
  }));
  const reflectors = startReflectors(parts, {
    client,
    log,
    metrics,
    role: "work",
    namespaces,
    onForbidden: forbidden.reject,
  });
  try {
    await Promise.race([reflectors.synced(), forbidden.promise]);
    return reflectors;
  } catch (error) {
    await reflectors.stop();
    throw error;
  }
}

interface NamesQuery {
  readonly client: KubeClient;
  readonly namespaces: PlannerOptions["namespaces"] | undefined;
  readonly namespace?: string;
}

async function* namesOf(
  { sources: [source] }: Controller,
  { client, namespaces: allowed, namespace }: NamesQuery,
): AsyncGenerator<NamespacedName> {
  const { type, namespaces, labels, fields } = scopeOf(source, allowed);
  const places = namespace === undefined ? (namespaces ?? [undefined]) : [namespace];
  const background = client.scoped({ priority: "resync" });
  for (const place of places) {
    const query = defined({ namespace: place, labelSelector: labels, fieldSelector: fields });
    let continueToken: string | undefined;
    do {
      const page = await background.listPage(type, { ...query, ...defined({ continueToken }) });
      for (const { metadata } of page.items) {
        yield { name: metadata.name, ...defined({ namespace: metadata.namespace }) };
      }
      continueToken = page.continueToken;
    } while (continueToken !== undefined);
  }
}
