import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApiServer } from "@konverge/apiserver";
import { createLocalGate, type ResourceType } from "@konverge/core";
import { EnvtestUnavailable, startControlPlane, type ControlPlane } from "@konverge/infra-envtest";
import { createKubeClient, loadKubeCredentials, type KubeClient } from "@konverge/kube";
import { Namespace } from "@konverge/kube/kinds";
import { installWidgets, type Widget } from "../integration/kube/kube-servers.ts";

/** The API server of the game day, with the kind of its controller. */
export interface Plane extends AsyncDisposable {
  readonly description: string;
  readonly client: KubeClient;
  readonly kubeconfig: string;
  readonly widgets: ResourceType<Widget>;
  createNamespace(name: string): Promise<void>;
  /** Undefined for the embedded server. */
  readonly pids: ControlPlane["pids"] | undefined;
}

/** Starts a real kube-apiserver if there is one, or else the embedded server. */
export async function startPlane(log: (line: string) => void): Promise<Plane> {
  await using cleanup = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "konverge-game-day-api-"));
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  const { description, text, pids } = await startServer(cleanup, log);
  const kubeconfig = join(folder, "kubeconfig");
  await writeFile(kubeconfig, text);
  const client = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigText: text }),
    gate: createLocalGate({ ratePerSecond: 5_000, burst: 5_000 }),
    userAgent: "game-day",
  });
  cleanup.defer(() => client.close());
  const widgets = await installWidgets(client, "game-day.konverge.dev");
  const kept = cleanup.move();
  return {
    description,
    client,
    kubeconfig,
    widgets,
    pids,
    createNamespace: async (name) => void (await client.create(Namespace, { metadata: { name } })),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

async function startServer(
  cleanup: AsyncDisposableStack,
  log: (line: string) => void,
): Promise<{ readonly text: string } & Pick<Plane, "description" | "pids">> {
  try {
    const plane = cleanup.use(await startControlPlane({ log }));
    const { version, kubeconfig: text, pids } = plane;
    return { description: `kube-apiserver ${version}`, text, pids };
  } catch (error) {
    if (!(error instanceof EnvtestUnavailable)) throw error;
    log(error.message);
    const server = await createApiServer({});
    cleanup.defer(() => server.close());
    return { description: "the embedded API server", text: server.kubeconfig, pids: undefined };
  }
}
