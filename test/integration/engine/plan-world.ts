import {
  defined,
  formatKey,
  type ApiObject,
  type ObjectKey,
  type ResourceType,
} from "@konverge/core";
import { defineController, type ReconcileContext } from "@konverge/engine";
import { createEventRecorder, type KubeClient, type NewObject } from "@konverge/kube";
import { ConfigMap, Deployment, Namespace } from "@konverge/kube/kinds";
import { AttemptPlan, NO_LANES } from "../../../libs/engine/src/access/attempt-plan.ts";
import { Attempt, NO_CACHE } from "../../../libs/engine/src/access/attempt.ts";
import { createWriteGroups } from "../../../libs/engine/src/access/write-group.ts";
import { runAttempt, type AttemptRun } from "../../../libs/engine/src/attempt/run-attempt.ts";
import type { Widget } from "../kube/kube-servers.ts";
import type { randomWorld } from "./plan-programs.ts";

type Reconcile = (context: ReconcileContext<Widget>) => Promise<void>;

/** A namespace with a widget, and attempts to reconcile it, without queue and watches. */
export interface World {
  readonly namespace: string;
  /** Runs an attempt; with `plan`, as a plan. */
  run(reconcile: Reconcile, plan?: AttemptPlan): Promise<AttemptRun>;
  /** The objects of the kinds that programs write. */
  objects(): Promise<ApiObject[]>;
  remove(): Promise<void>;
}

export interface WorldOptions {
  readonly namespace: string;
  readonly objects: ReturnType<typeof randomWorld>;
  /** Makes the calls of plans. Default: the client of everything else. */
  readonly planner?: KubeClient;
}

const silent = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent };
const loop = { began: () => ({ ended: () => 0 }), stop: () => undefined };

export async function startWorld(
  client: KubeClient,
  Widgets: ResourceType<Widget>,
  { namespace, objects, planner = client }: WorldOptions,
): Promise<World> {
  await client.create(Namespace, { metadata: { name: namespace } });
  await client.create(Widgets, { metadata: { namespace, name: "own" }, spec: { size: 1 } });
  for (const { name, held, x } of objects) {
    await client.create(ConfigMap, {
      metadata: {
        namespace,
        name,
        labels: { x },
        ...(held ? { finalizers: ["test.konverge.dev/held"] } : {}),
      },
      data: { x },
    } as NewObject<ApiObject>);
  }
  const key: ObjectKey = {
    controller: "planned",
    cluster: "default",
    resource: Widgets.resource,
    group: Widgets.group,
    namespace,
    name: "own",
  };
  const kinds = [ConfigMap, Deployment, Widgets] as const;
  const list = async (): Promise<ApiObject[]> => {
    const lists = await Promise.all(
      kinds.map((kind) => client.list(kind as ResourceType, { namespace })),
    );
    return lists.flatMap(({ items }) => items);
  };
  return {
    namespace,
    run: async (reconcile, plan) => {
      const controller = defineController({ name: "planned", for: Widgets, reconcile });
      const signal = new AbortController().signal;
      const lease = {
        key,
        id: formatKey(key),
        epoch: 1,
        attempt: 1,
        failures: 0,
        conflicts: 0,
        triggers: [],
        isResync: false,
        pauses: [],
        requestedAtMs: Date.now(),
        startedAtMs: Date.now(),
        class: "interactive" as const,
        signal,
        checkExpiry: () => undefined,
        keepLog: async () => undefined,
      };
      const runtime = {
        controller,
        use: [],
        client: plan === undefined ? client : planner,
        isInScope: () => true,
        cache: NO_CACHE,
        lanes: NO_LANES,
        groups: createWriteGroups(),
        retry: undefined,
        runs: undefined,
        events: createEventRecorder("konverge/planned"),
        limits: undefined,
        clusters: undefined,
      };
      const options = { log: silent, span: undefined, ...defined({ plan }) };
      return await runAttempt(new Attempt(lease, runtime, options), loop);
    },
    objects: list,
    remove: async () => {
      for (const object of await list()) {
        const { name, finalizers } = object.metadata;
        const type = kinds.find(({ kind }) => kind === object.kind) as ResourceType;
        if (finalizers !== undefined) {
          await client.mutate(type, { namespace, name }, (draft) => {
            delete draft.metadata.finalizers;
          });
        }
        await client.delete(type, { namespace, name }).catch(() => undefined);
      }
      await client.delete(Namespace, { name: namespace }).catch(() => undefined);
    },
  };
}
