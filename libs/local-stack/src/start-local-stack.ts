import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { defined, createLocalGate, ensureError } from "@konverge/core";
import { createKubeClient, loadKubeCredentials, type KubeClient } from "@konverge/kube";
import { obtainRedis } from "@konverge/apiserver";
import type { ApiServer, StartApiServer } from "./api-server.ts";
import { startProcess, type LocalProcess } from "./start-process.ts";

export interface LocalStackOptions {
  /** Prefix of visible names: Redis keys, temporary folders, user agent. */
  readonly name: string;
  /** Path of the command line's main module. */
  readonly cli: string;
  readonly startApiServer: StartApiServer;
  /** The cluster that the dashboard shows first (default: the cluster without a name). */
  readonly home?: string;
  /** Environment of every process, below the settings of the stack. */
  readonly env?: Readonly<Record<string, string>>;
  /** Folder for the logs of all processes. */
  readonly logs?: string | undefined;
  readonly log: (line: string) => void;
  /** Port of the HTTP API; 0 selects a free one. */
  readonly apiPort: number;
}

/** An installation on this machine without workers. Every part is a process of its own. */
export interface LocalStack {
  readonly serverVersion: string;
  readonly redis: { readonly version: string; readonly url: string };
  readonly apiServer: ApiServer;
  /** Access with its own user agent and without a guard. */
  readonly client: KubeClient;
  readonly apiUrl: string;
  /** Prefix of the Redis keys. */
  readonly installation: string;
  /** Starts a command of the command line with the settings of the stack. */
  readonly start: (args: readonly string[], env?: Readonly<Record<string, string>>) => LocalProcess;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startLocalStack(options: LocalStackOptions): Promise<LocalStack> {
  const { name, cli, log, logs } = options;
  const cleanup = new AsyncDisposableStack();
  try {
    if (logs !== undefined) await mkdir(logs, { recursive: true });
    const installation = `konverge-${name}-${randomBytes(3).toString("hex")}`;
    const redis = await obtainRedis({ log });
    cleanup.defer(() => redis.stop());
    cleanup.defer(async () => {
      await redis.removeKeys(installation).catch((error: unknown) => {
        log(`keys ${installation}:* remain in Redis: ${ensureError(error).message}`);
      });
    });
    const apiServer = await options.startApiServer({ name, cli, logs, cleanup });

    const client = createKubeClient({
      credentials: loadKubeCredentials({ kubeconfigPath: apiServer.kubeconfigPath }),
      gate: createLocalGate({ ratePerSecond: 10_000, burst: 10_000 }),
      userAgent: `konverge-${name}`,
    });
    cleanup.defer(() => client.close());
    const settings = {
      ...options.env,
      KONVERGE_REDIS_URL: redis.url,
      KONVERGE_PREFIX: installation,
      KUBECONFIG: apiServer.kubeconfigPath,
      // Settings of the shell for another cluster would take precedence over KUBECONFIG.
      KONVERGE_KUBECONFIG: apiServer.kubeconfigPath,
      KONVERGE_CONTEXT: "",
    };
    const start = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
      startProcess({ script: cli, args, env: { ...settings, ...env }, logs });
    const api = start(["api"], {
      KONVERGE_API_PORT: String(options.apiPort),
      ...defined({ KONVERGE_CLUSTER: options.home }),
    });
    cleanup.defer(() => api.stop());
    const listening = await api.logged("api listening");
    const serverVersion = (await client.serverVersion()).gitVersion;
    const disposal = cleanup.move();
    return {
      serverVersion,
      redis: { version: `${redis.kind} ${redis.version}`, url: redis.url },
      apiServer,
      client,
      apiUrl: String(listening["url"]),
      installation,
      start,
      [Symbol.asyncDispose]: () => disposal.disposeAsync(),
    };
  } catch (error) {
    await cleanup.disposeAsync();
    throw error;
  }
}
