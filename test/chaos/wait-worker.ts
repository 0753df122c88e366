/** A worker process whose runs wait for a ready object. */
import { defined, type ResourceType } from "@konverge/core";
import { defineConfig, startWorker } from "@konverge/worker";
import type { KubeconfigOptions } from "@konverge/kube";
import { defineWorkflow, ready, type ObjectRef, type Workflow } from "@konverge/workflow";

export interface WaitWorkerConfig {
  readonly redisUrl: string;
  readonly prefix: string;
  readonly kubeconfig: KubeconfigOptions;
  readonly kind: ResourceType;
}

export function makeReadiness(kind: ResourceType): Workflow<ObjectRef, string> {
  return defineWorkflow("readiness", { version: 1, kinds: [kind] }, async (w, ref: ObjectRef) => {
    const { uid } = await w.waitFor("ready", ready(ref), { timeout: "10m" });
    return uid;
  });
}

if (import.meta.main) {
  const { redisUrl, prefix, kubeconfig, kind } = JSON.parse(
    process.argv[2] ?? "{}",
  ) as WaitWorkerConfig;
  const { kubeconfigText, kubeconfigPath } = kubeconfig;
  const worker = await startWorker({
    config: defineConfig({
      workflows: [makeReadiness(kind)],
      settings: { prefix, leaseDuration: "3s", logLevel: "error" },
    }),
    redis: redisUrl,
    ...(kubeconfigText === undefined ? {} : { kubeconfig: { text: kubeconfigText } }),
    ...defined({ kubeconfig: kubeconfigPath }),
  });
  process.once("SIGTERM", () => void worker.stop());
  process.send?.({ workerId: worker.workerId });
}
