import { randomUUID } from "node:crypto";
import { createLocalGate } from "@konverge/core";
import {
  createKubeClient,
  loadKubeCredentials,
  setControllerReference,
  type KubeClient,
} from "@konverge/kube";
import { ConfigMap, Secret } from "@konverge/kube/kinds";
import { buildAsShipped } from "./as-shipped.ts";
import { AS_DEPLOYED } from "./controller-arms.ts";
import { startEmbeddedServer } from "./embedded-server.ts";
import { figureOf, isWanted, rateOf, round2, type BenchOptions, type Figure } from "./measure.ts";
import { startOwnRedis } from "./own-redis.ts";
import { peakMemoryMiB, residentMemoryMiB, startPeerProcess } from "./peer-process.ts";
import type { SecretsScope, SecretsWorkerConfig } from "./secrets-worker.ts";

const SECRETS = 60_000;
const OWNED = 50;
const SECRET_BYTES = 20_000;
const ROUNDS = 3;
const WIDTH = 16;
const MAX_MIB = 150;
const SCOPES: readonly { readonly scope: SecretsScope; readonly name: string }[] = [
  { scope: "labels", name: "a label selects the owned ones" },
  { scope: "metadata", name: "the metadata of all" },
];

/**
 * Measures the memory of a worker that owns 50 of 60,000 Secrets of 20 kB, until each handler has listed its own. The server is
 * the embedded one, because the Secrets are most of the quota of etcd.
 */
export async function benchSecrets({ log, arms }: BenchOptions): Promise<Figure[]> {
  await using cleanup = new AsyncDisposableStack();
  const redis = cleanup.use(await startOwnRedis(log));
  const { kubeconfigPath } = cleanup.use(await startEmbeddedServer());
  const client = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigPath }),
    gate: createLocalGate({ ratePerSecond: 1e6, burst: 1e6 }),
    userAgent: "konverge-bench",
  });
  cleanup.defer(() => client.close());
  log(`secrets: creating ${SECRETS} Secrets of ${SECRET_BYTES / 1_000} kB`);
  await createSecrets(client);
  const programs = await buildAsShipped(["secrets-worker.ts"]);
  const start = (scope: SecretsScope) => {
    const config: SecretsWorkerConfig = {
      redisUrl: redis.url,
      kubeconfigPath,
      prefix: `bench-${randomUUID()}`,
      scope,
      owners: OWNED,
    };
    const program = programs["secrets-worker.ts"];
    return startPeerProcess(process.execPath, [...AS_DEPLOYED, program, JSON.stringify(config)]);
  };
  const scopes = SCOPES.filter(({ name }) => isWanted(name, arms)).map((each) => ({
    ...each,
    peaks: new Array<number>(),
    ends: new Array<number>(),
  }));
  for (let round = 1; round <= ROUNDS; round++) {
    for (const { scope, name, peaks, ends } of scopes) {
      const worker = start(scope);
      await worker.ready;
      const peak = peakMemoryMiB(worker.pid) ?? Number.NaN;
      const end = residentMemoryMiB(worker.pid) ?? Number.NaN;
      await worker.stop();
      peaks.push(peak);
      ends.push(end);
      log(`secrets: round ${round}, ${name}: peak ${round2(peak)} MiB, then ${round2(end)} MiB`);
    }
  }
  return scopes.flatMap(({ scope, name, peaks, ends }) => {
    const what = { suite: "secrets", case: `${OWNED} of ${SECRETS} Secrets, ${name}`, unit: "MiB" };
    const goal = scope === "labels" ? MAX_MIB : null;
    return [
      figureOf({ ...what, metric: "peak", ours: peaks, goal, goalIs: "most" }),
      figureOf({ ...what, metric: "after all lists", ours: ends, goal, goalIs: "most" }),
    ];
  });
}

async function createSecrets(client: KubeClient): Promise<void> {
  const data = { payload: Buffer.alloc((SECRET_BYTES * 3) / 4, "s").toString("base64") };
  const namespace = "default";
  const labels = { "app.kubernetes.io/managed-by": "bench" };
  for (let n = 0; n < OWNED; n++) {
    const owner = await client.create(ConfigMap, {
      metadata: { namespace, name: `owner-${n}`, labels },
    });
    const metadata = { namespace, name: `owned-${n}`, labels, ownerReferences: [] };
    const secret = { metadata, type: "Opaque", data };
    setControllerReference(secret, owner);
    await client.create(Secret, secret);
  }
  await rateOf(SECRETS - OWNED, WIDTH, (_, n) =>
    client.create(Secret, {
      metadata: { namespace, name: `other-${n}`, labels: { "app.kubernetes.io/name": `app-${n}` } },
      type: "Opaque",
      data,
    }),
  );
}
