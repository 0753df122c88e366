import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLocalGate } from "@konverge/core";
import { createKubeClient, loadKubeCredentials, type KubeClient } from "@konverge/kube";
import { createApiServer, guard, type EmbeddedApiServer } from "@konverge/apiserver";

interface DemoCluster {
  readonly name: "east" | "west";
  readonly server: EmbeddedApiServer;
  /** The demo's own access, without a guard. */
  readonly client: KubeClient;
  /** Number of such requests of a resource that workers sent, answered or not. */
  readonly countWorkerCalls: (verb: string, resource: string) => Promise<number>;
}

export interface TwoClusters extends AsyncDisposable {
  readonly east: DemoCluster;
  readonly west: DemoCluster;
  /** A kubeconfig with one context per cluster, named after it. */
  readonly kubeconfigPath: string;
}

/** Two embedded API servers in this process, so that it can keep one of them from answering. */
export async function startTwoClusters(): Promise<TwoClusters> {
  await using cleanup = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "konverge-demo-"));
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  // Removes the folder if this process is killed.
  const guardian = guard({ pids: [], folder });
  cleanup.defer(() => guardian.release());
  const start = async (name: DemoCluster["name"]): Promise<DemoCluster> => {
    const auditLog = join(folder, `${name}-audit.log`);
    const server = await createApiServer({ auditLog });
    cleanup.defer(() => server.close());
    const client = createKubeClient({
      credentials: loadKubeCredentials({ kubeconfigText: server.kubeconfig }),
      gate: createLocalGate({ ratePerSecond: 10_000, burst: 10_000 }),
      userAgent: "konverge-demo",
    });
    cleanup.defer(() => client.close());
    return {
      name,
      server,
      client,
      countWorkerCalls: (verb, resource) => countWorkerCalls(auditLog, verb, resource),
    };
  };
  const [east, west] = [await start("east"), await start("west")];
  const kubeconfigPath = join(folder, "kubeconfig");
  await writeFile(kubeconfigPath, kubeconfigOf([east, west]), { mode: 0o600 });
  const kept = cleanup.move();
  return { east, west, kubeconfigPath, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

/** JSON is YAML. */
function kubeconfigOf(clusters: readonly DemoCluster[]): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: clusters.map(({ name, server }) => ({ name, cluster: { server: server.url } })),
    users: [{ name: "anybody", user: {} }],
    contexts: clusters.map(({ name }) => ({ name, context: { cluster: name, user: "anybody" } })),
    "current-context": clusters[0]?.name,
  });
}

interface AuditEvent {
  readonly stage?: string;
  readonly verb?: string;
  readonly userAgent?: string;
  readonly objectRef?: { readonly resource?: string; readonly subresource?: string };
}

async function countWorkerCalls(file: string, verb: string, resource: string): Promise<number> {
  const lines = (await readFile(file, "utf8")).split("\n").filter((line) => line !== "");
  return lines.filter((line) => {
    const event = JSON.parse(line) as AuditEvent;
    return (
      event.verb === verb &&
      event.objectRef?.resource === resource &&
      event.objectRef.subresource === undefined &&
      event.userAgent?.startsWith("konverge-worker/") === true
    );
  }).length;
}
