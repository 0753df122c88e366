import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll } from "vitest";
import { createLocalGate, type ResourceType } from "@konverge/core";
import {
  defineConfig,
  startWorker,
  type RunningWorker,
  type WorkerOptions,
} from "@konverge/worker";
import { type Controller, type Log } from "@konverge/engine";
import { createKubeClient, loadKubeCredentials, type KubeClient } from "@konverge/kube";
import { createApiServer, type EmbeddedApiServer } from "@konverge/apiserver";
import { installWidgets, type Widget } from "../kube/kube-servers.ts";
import { useQueues, type QueueHarness } from "../queue/queue-harness.ts";
import { type LogLine, keepLog } from "../../../apps/cli/src/testing/kept-log.ts";

export interface WorkerHarness {
  readonly queues: QueueHarness;
  readonly server: EmbeddedApiServer;
  readonly client: KubeClient;
  readonly Widgets: ResourceType<Widget>;
  /** Completed calls of workers, or of another user agent, as `verb path`. */
  calls(agent?: string): string[];
  start(
    controllers: readonly Controller[],
    options?: Partial<WorkerOptions>,
  ): Promise<RunningWorker & { readonly lines: LogLine[] }>;
}

/** Short, so that tests need not wait for a Lease to expire. */
const shortLeases = { leaseDuration: "3s" } as const;

/** Embedded workers on a separate API server per file; all are stopped after each test. */
export function useWorkers(group: string): WorkerHarness {
  const queues = useQueues();
  const workers = new Set<RunningWorker>();
  let folder = "";
  let open: Pick<WorkerHarness, "server" | "client" | "Widgets"> | undefined;
  const opened = () => {
    if (open === undefined) throw new Error("the server is not started yet");
    return open;
  };
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "konverge-workers-"));
    const server = await createApiServer({ auditLog: join(folder, "audit.jsonl") });
    const client = createKubeClient({
      credentials: loadKubeCredentials({ kubeconfigText: server.kubeconfig }),
      gate: createLocalGate({ ratePerSecond: 2_000, burst: 2_000 }),
      userAgent: "konverge-test/1",
    });
    open = { server, client, Widgets: await installWidgets(client, group) };
  });
  afterEach(async () => {
    await Promise.all([...workers].map((worker) => worker.kill()));
    workers.clear();
    const { client, Widgets } = opened();
    for (const { metadata } of (await client.list(Widgets)).items) {
      await client.delete(Widgets, { namespace: "default", name: metadata.name });
    }
  });
  afterAll(async () => {
    await open?.client.close();
    await open?.server.close();
    await rm(folder, { recursive: true, force: true });
  });

  return {
    queues,
    get server() {
      return opened().server;
    },
    get client() {
      return opened().client;
    },
    get Widgets() {
      return opened().Widgets;
    },
    calls(agent = "konverge-worker/") {
      return readFileSync(join(folder, "audit.jsonl"), "utf8")
        .split("\n")
        .filter((line) => line.includes(`"userAgent":"${agent}`))
        .map((line) => {
          const { verb, requestURI } = JSON.parse(line) as { verb: string; requestURI: string };
          return `${verb} ${requestURI}`;
        });
    },
    async start(controllers, options = {}) {
      const lines: LogLine[] = [];
      const log: Log = keepLog(lines);
      const worker = await startWorker({
        config:
          options.config ??
          defineConfig({ controllers, settings: { ...shortLeases, prefix: queues.prefix } }),
        redis: queues.url,
        kubeconfig: { text: opened().server.kubeconfig },
        log,
        ...options,
      });
      workers.add(worker);
      return Object.assign(worker, { lines });
    },
  };
}
