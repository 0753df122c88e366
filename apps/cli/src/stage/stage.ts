import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeSettings } from "@konverge/contracts";
import { KonvergeError, createLocalGate, ensureError } from "@konverge/core";
import { createKubeClient, loadKubeCredentials, type KubeClient } from "@konverge/kube";
import { obtainRedis } from "@konverge/testkit";
import { LOG_FOLDER, parseLogLine, startKonverge } from "./child-process.ts";

export type ClusterKind = "embedded" | "envtest" | "kubeconfig";

export interface StageOptions {
  readonly cluster: ClusterKind;
  /** Name of the cluster that the dashboard shows at first. Default: that of a worker without a name. */
  readonly home?: string;
  readonly kubeconfig: string | undefined;
  /** Folder for the logs of all processes. */
  readonly logs: string | undefined;
  readonly log: (line: string) => void;
  /** Who sets it, in names that people may see. */
  readonly name: "demo" | "dev";
  /** How much later the embedded server answers, in ms. */
  readonly latencyMs: number;
  /** 0 takes a free one. */
  readonly apiPort: number;
}

/** The parts of an installation on this machine, without workers. Every process is a real one. */
export interface Stage {
  readonly cluster: { readonly kind: ClusterKind; readonly version: string };
  readonly redis: { readonly version: string; readonly url: string };
  readonly kubeconfigPath: string;
  /** Undefined where the server is not ours: then calls are counted by our own transport. */
  readonly auditLog: string | undefined;
  /** Our own access, counted nowhere. */
  readonly client: KubeClient;
  readonly apiUrl: string;
  /** Environment of every process. */
  readonly env: Readonly<Record<string, string>>;
  readonly installation: string;
  /** Process of the API server; undefined where it is not ours. */
  readonly serverPid: number | undefined;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A download or a build may come first. */
const CONTROL_PLANE_MS = 900_000;

interface Server {
  readonly kubeconfigPath: string;
  readonly auditLog: string | undefined;
  readonly pid: number | undefined;
}

export async function setStage(options: StageOptions): Promise<Stage> {
  const cleanup = new AsyncDisposableStack();
  try {
    if (options.logs !== undefined) await mkdir(options.logs, { recursive: true });
    const installation = `konverge-${options.name}-${randomBytes(3).toString("hex")}`;
    const redis = await obtainRedis({ log: options.log });
    cleanup.defer(() => redis.stop());
    cleanup.defer(async () => {
      await redis.removeKeys(installation).catch((error: unknown) => {
        options.log(`keys ${installation}:* stay in Redis: ${ensureError(error).message}`);
      });
    });
    const server = await startServer(options, cleanup);

    const client = createKubeClient({
      credentials: loadKubeCredentials({ kubeconfigPath: server.kubeconfigPath }),
      gate: createLocalGate({ ratePerSecond: 10_000, burst: 10_000 }),
      userAgent: `konverge-${options.name}`,
    });
    cleanup.defer(() => client.close());
    const env = {
      ...(options.name === "demo" ? silencedSettings() : {}),
      KONVERGE_REDIS_URL: redis.url,
      KONVERGE_PREFIX: installation,
      KUBECONFIG: server.kubeconfigPath,
      // What the shell says of another cluster comes before the line above.
      KONVERGE_KUBECONFIG: server.kubeconfigPath,
      KONVERGE_CONTEXT: "",
      ...(options.logs === undefined ? {} : { [LOG_FOLDER]: options.logs }),
    };
    const api = startKonverge(["api"], {
      ...env,
      KONVERGE_API_PORT: String(options.apiPort),
      ...(options.home === undefined ? {} : { KONVERGE_CLUSTER: options.home }),
    });
    cleanup.defer(() => api.stop());
    const listening = await api.said("api listening");
    const disposal = cleanup.move();
    return {
      cluster: { kind: options.cluster, version: (await client.serverVersion()).gitVersion },
      redis: { version: `${redis.kind} ${redis.version}`, url: redis.url },
      kubeconfigPath: server.kubeconfigPath,
      auditLog: server.auditLog,
      client,
      apiUrl: String(listening["url"]),
      env,
      installation,
      serverPid: server.pid,
      [Symbol.asyncDispose]: () => disposal.disposeAsync(),
    };
  } catch (error) {
    await cleanup.disposeAsync();
    throw error;
  }
}

/** The demo is the same in every shell, also in one that is set for another installation. Empty is as if it was not set. */
function silencedSettings(): Record<string, string> {
  const names = describeSettings().flatMap(({ env }) => [env, `${env}_FILE`]);
  return Object.fromEntries(names.map((name) => [name, ""]));
}

async function startServer(
  { cluster, kubeconfig, log, name, latencyMs }: StageOptions,
  cleanup: AsyncDisposableStack,
): Promise<Server> {
  const makeFolder = async () => {
    const folder = await mkdtemp(join(tmpdir(), `konverge-${name}-`));
    cleanup.defer(() => rm(folder, { recursive: true, force: true }));
    return { folder, auditLog: join(folder, "audit.log") };
  };
  switch (cluster) {
    case "embedded": {
      const { folder, auditLog } = await makeFolder();
      const kubeconfigPath = join(folder, "kubeconfig");
      const args = [
        "--port=0",
        `--audit-log=${auditLog}`,
        `--latency=${latencyMs}`,
        `--kubeconfig-out=${kubeconfigPath}`,
      ];
      const server = startKonverge(["apiserver", ...args], {}, folder);
      cleanup.defer(() => server.stop());
      await server.said("API server listening");
      return { kubeconfigPath, auditLog, pid: server.pid };
    }
    case "envtest": {
      const { folder, auditLog } = await makeFolder();
      const plane = startKonverge(["demo-control-plane", `--audit-log=${auditLog}`], {}, folder);
      cleanup.defer(() => plane.stop());
      // Progress of a download or a build; log lines are JSON.
      plane.onLine((line) => {
        if (parseLogLine(line) === undefined) log(line);
      });
      const ready = await plane.said("control plane ready", CONTROL_PLANE_MS);
      log(`kube-apiserver ${String(ready["version"])} and etcd are up`);
      const pid = Number(ready["serverPid"]);
      return { kubeconfigPath: String(ready["kubeconfigPath"]), auditLog, pid };
    }
    case "kubeconfig": {
      if (kubeconfig === undefined) {
        throw new KonvergeError(
          "invalid_config",
          "--cluster kubeconfig: no kubeconfig; set KUBECONFIG or give --kubeconfig FILE",
        );
      }
      await readFile(kubeconfig).catch((error: unknown) => {
        throw new KonvergeError("invalid_config", `--kubeconfig ${kubeconfig} cannot be read`, {
          cause: error,
        });
      });
      return { kubeconfigPath: kubeconfig, auditLog: undefined, pid: undefined };
    }
  }
}
