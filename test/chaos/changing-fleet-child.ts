/** A worker process of the fleets in this folder. Its argument selects what it runs. */
import type { ApiObject, ResourceType, WorkerRole } from "@konverge/core";
import { defineConfig, startWorker } from "@konverge/worker";
import { defineController } from "@konverge/engine";
import { ConfigMap } from "@konverge/kube/kinds";

export interface FleetConfig {
  readonly redisUrl: string;
  readonly kubeconfig: string;
  readonly prefix: string;
  readonly parents: ResourceType<Parent>;
  /** Written into the status of each parent by this version of the controller. */
  readonly controllerVersion: string;
  readonly concurrency: number;
  readonly role: WorkerRole;
  /** Prefix of the names of children. */
  readonly childPrefix: string;
}

export interface Parent extends ApiObject {
  spec: { children: number };
  status?: {
    observedGeneration?: number;
    setting?: string;
    version?: string;
  };
}

/** A ConfigMap that every parent reads. */
export const SETTING = { namespace: "default", name: "fleet-setting" } as const;

export type FleetWord = { readonly kind: "ready"; readonly workerId: string };

/** The names of a parent's children in a version of the controller. */
export function childrenOf(parent: Parent, childPrefix: string): string[] {
  return Array.from(
    { length: parent.spec.children },
    (_, n) => `${childPrefix}${parent.metadata.name}-${n}`,
  );
}

async function main(config: FleetConfig): Promise<void> {
  const { parents, childPrefix, controllerVersion } = config;
  const controller = defineController({
    name: "fleet",
    for: parents,
    owns: [ConfigMap],
    watches: [
      {
        type: ConfigMap,
        // All possible parents; a name without an object costs one read.
        map: (object) =>
          object.metadata.name === SETTING.name
            ? Array.from({ length: PARENTS }, (_, n) => ({
                namespace: SETTING.namespace,
                name: parentName(n),
              }))
            : [],
      },
    ],
    concurrency: config.concurrency,
    // Two versions that revert each other are a loop. With throttling they converge as well, but up to a minute later.
    loopProtection: "report",
    cleanup: async ({ object, kube }) => {
      for (const child of await kube.list(ConfigMap, { ownedBy: object })) await kube.delete(child);
    },
    reconcile: async ({ object: parent, kube }) => {
      const wanted = childrenOf(parent, childPrefix);
      const owned = await kube.list(ConfigMap, { ownedBy: parent });
      const present = new Set(owned.map(({ metadata }) => metadata.name));
      for (const name of wanted) {
        if (!present.has(name)) await kube.create(ConfigMap, { name, ownedBy: parent });
      }
      for (const child of owned) {
        if (!wanted.includes(child.metadata.name)) await kube.delete(child);
      }
      const setting = await kube.find(ConfigMap, SETTING.name);
      await kube.mutateStatus(parent, (draft) => {
        draft.status = {
          observedGeneration: parent.metadata.generation ?? 0,
          setting: setting?.data?.["value"] ?? "",
          version: controllerVersion,
        };
      });
    },
  });
  const worker = await startWorker({
    config: defineConfig({
      controllers: [controller],
      settings: { prefix: config.prefix, leaseDuration: "3s", logLevel: "error" },
      clusters: { default: { rate: 2_000, burst: 2_000 } },
    }),
    redis: config.redisUrl,
    kubeconfig: config.kubeconfig,
    role: config.role,
  });
  process.once("SIGTERM", () => {
    void worker.stop().then(() => process.disconnect());
  });
  process.send?.({ kind: "ready", workerId: worker.workerId } satisfies FleetWord);
}

/** Maximum of parents in a test. */
export const PARENTS = 40;

export function parentName(n: number): string {
  return `p-${n}`;
}

if (import.meta.main) await main(JSON.parse(process.argv[2] ?? "{}") as FleetConfig);
