/** A worker whose controller owns one Secret per object. Prints `ready` when each handler has found its Secret in the cache. */
import { defineController } from "@konverge/engine";
import { onlyMetadata } from "@konverge/kube";
import { ConfigMap, Secret } from "@konverge/kube/kinds";
import { sayReadyUntilStdinEnds } from "./peer-process.ts";
import { startBenchWorker, type BenchWorkerPlace } from "./start-bench-worker.ts";

export interface SecretsWorkerConfig extends BenchWorkerPlace {
  /** The part of all Secrets that the worker caches. */
  readonly scope: SecretsScope;
  readonly owners: number;
}

/** The whole Secrets with a label, or the metadata of all Secrets. */
export type SecretsScope = "labels" | "metadata";

const OWNED_BY_BENCH = "app.kubernetes.io/managed-by=bench";

async function main({ scope, owners, ...place }: SecretsWorkerConfig): Promise<void> {
  const found = new Set<string>();
  const all = Promise.withResolvers<void>();
  const note = (owner: string, secrets: readonly object[]) => {
    if (secrets.length === 1) found.add(owner);
    if (found.size === owners) all.resolve();
  };
  const byLabels = defineController({
    name: "secrets",
    for: { type: ConfigMap, labels: OWNED_BY_BENCH },
    owns: [{ type: Secret, labels: OWNED_BY_BENCH }],
    async reconcile({ object, kube }) {
      const labelSelector = OWNED_BY_BENCH;
      note(object.metadata.name, await kube.list(Secret, { ownedBy: object, labelSelector }));
    },
  });
  const byMetadata = defineController({
    name: "secrets",
    for: { type: ConfigMap, labels: OWNED_BY_BENCH },
    owns: [onlyMetadata(Secret)],
    async reconcile({ object, kube }) {
      note(object.metadata.name, await kube.list(onlyMetadata(Secret), { ownedBy: object }));
    },
  });
  const worker = await startBenchWorker(place, [scope === "labels" ? byLabels : byMetadata]);
  await all.promise;
  await sayReadyUntilStdinEnds();
  await worker.stop();
}

if (import.meta.main) await main(JSON.parse(process.argv[2] ?? "{}") as SecretsWorkerConfig);
