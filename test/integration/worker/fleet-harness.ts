import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApiServer, type EmbeddedApiServer } from "@konverge/apiserver";
import { createLocalGate } from "@konverge/core";
import type { Controller, Log } from "@konverge/engine";
import { createKubeClient, loadKubeCredentials, type KubeClient } from "@konverge/kube";
import {
  defineConfig,
  startWorker,
  type ClusterProvider,
  type RunningWorker,
} from "@konverge/worker";
import { keepLog } from "../../../apps/cli/src/testing/kept-log.ts";
import type { QueueHarness } from "../queue/queue-harness.ts";

/** A cluster of a test, with its own API server and audit log. */
export interface FleetCluster extends AsyncDisposable {
  readonly server: EmbeddedApiServer;
  readonly client: KubeClient;
  /** Calls of workers, as `verb path`. */
  calls(): string[];
}

export async function startFleetCluster(): Promise<FleetCluster> {
  const folder = mkdtempSync(join(tmpdir(), "konverge-fleet-"));
  const auditLog = join(folder, "audit.jsonl");
  const server = await createApiServer({ auditLog });
  const client = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigText: server.kubeconfig }),
    gate: createLocalGate({ ratePerSecond: 5_000, burst: 5_000 }),
    userAgent: "konverge-test/1",
  });
  return {
    server,
    client,
    calls: () =>
      readFileSync(auditLog, "utf8")
        .split("\n")
        .filter((line) => line.includes('"userAgent":"konverge-worker/'))
        .map((line) => {
          const { verb, requestURI } = JSON.parse(line) as { verb: string; requestURI: string };
          return `${verb} ${requestURI}`;
        }),
    async [Symbol.asyncDispose]() {
      await client.close();
      await server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A directory of kubeconfigs, whose files appear whole. */
export class KubeconfigFolder implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), "konverge-kubeconfigs-"));

  put(name: string, kubeconfig: string): void {
    const file = join(this.path, `${name}.kubeconfig`);
    writeFileSync(`${file}.part`, kubeconfig);
    renameSync(`${file}.part`, file);
  }

  remove(name: string): void {
    rmSync(join(this.path, `${name}.kubeconfig`));
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

interface FleetWorkerOptions {
  /** The cluster of the setting `kubeconfig`. */
  readonly home: FleetCluster;
  readonly clusters: ClusterProvider;
  readonly controllers: readonly Controller[];
  readonly settings?: object;
  readonly log?: Log;
}

export function startFleetWorker(
  { url, prefix }: Pick<QueueHarness, "url" | "prefix">,
  { home, clusters, controllers, settings, log = keepLog([]) }: FleetWorkerOptions,
): Promise<RunningWorker> {
  return startWorker({
    config: defineConfig({
      controllers,
      clusters,
      settings: { leaseDuration: "3s", prefix, ...settings },
    }),
    redis: url,
    kubeconfig: { text: home.server.kubeconfig },
    log,
  });
}
