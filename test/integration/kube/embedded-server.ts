import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLocalGate } from "@konverge/core";
import { createKubeClient, loadKubeCredentials, type KubeClient } from "@konverge/kube";
import { createApiServer } from "@konverge/apiserver";

export interface EmbeddedServer extends AsyncDisposable {
  /** The test's own client, without a rate limit. */
  readonly client: KubeClient;
  /** Path of a file, for other processes. */
  readonly kubeconfig: string;
}

/** An API server for one test, for programs that find it by a kubeconfig. */
export async function startEmbeddedServer(): Promise<EmbeddedServer> {
  await using cleanup = new AsyncDisposableStack();
  const server = await createApiServer({});
  cleanup.defer(() => server.close());
  const folder = await mkdtemp(join(tmpdir(), "konverge-server-"));
  cleanup.defer(() => rm(folder, { recursive: true }));
  const kubeconfig = join(folder, "kubeconfig");
  await writeFile(kubeconfig, server.kubeconfig);
  const client = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigPath: kubeconfig }),
    gate: createLocalGate({ ratePerSecond: 10_000, burst: 10_000 }),
    userAgent: "konverge-test/1",
  });
  cleanup.defer(() => client.close());
  const kept = cleanup.move();
  return { client, kubeconfig, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}
