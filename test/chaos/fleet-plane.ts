import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createLocalGate } from "@konverge/core";
import { createKubeClient, loadKubeCredentials, type KubeClient } from "@konverge/kube";
import { startOutagePlane } from "./outage-plane.ts";
import { startTcpProxy, type TcpProxy } from "./tcp-proxy.ts";
import { Child } from "../support/child.ts";

/** An API server that can be killed and restarted with its objects, with a separate network per worker. */
export interface FleetPlane extends AsyncDisposable {
  /** Not affected by the networks. */
  readonly admin: KubeClient;
  /** Opens a network to it, with its kubeconfig. */
  connect(): Promise<{ readonly proxy: TcpProxy; readonly kubeconfig: string }>;
  kill(): Promise<void>;
  start(): Promise<void>;
  /** Rejects, delays and loses responses; not available on the real server. */
  readonly faults?: (on: boolean) => void;
}

const CHILD = fileURLToPath(new URL("fleet-api-server.ts", import.meta.url));
const NODE = ["--conditions=@konverge/source"];

const connectAdmin = (kubeconfigText: string): KubeClient =>
  createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigText }),
    gate: createLocalGate({ ratePerSecond: 5_000, burst: 5_000 }),
    userAgent: "fleet-admin",
  });

const kubeconfigOf = (url: string): string =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "fleet", cluster: { server: url } }],
    users: [{ name: "test", user: {} }],
    contexts: [{ name: "fleet", context: { cluster: "fleet", user: "test" } }],
    "current-context": "fleet",
  });

export async function startEmbeddedPlane(seed: number): Promise<FleetPlane> {
  const folder = await mkdtemp(join(tmpdir(), "konverge-fleet-api-"));
  const proxies = new Set<TcpProxy>();
  let child: Child | undefined;
  const start = async () => {
    child = new Child([...NODE, CHILD, folder, String(seed)], { ipc: true });
    const port = Number(new URL(await child.ready).port);
    for (const proxy of proxies) proxy.retarget(port);
    return port;
  };
  const kill = async () => {
    await child?.kill();
  };
  let port = await start();
  const connect: FleetPlane["connect"] = async () => {
    const proxy = await startTcpProxy(port);
    proxies.add(proxy);
    return { proxy, kubeconfig: kubeconfigOf(`http://127.0.0.1:${proxy.port}`) };
  };
  // The admin client follows a server that restarts on another port.
  const own = await connect();
  const admin = connectAdmin(own.kubeconfig);
  return {
    admin,
    connect,
    kill,
    async start() {
      port = await start();
    },
    faults: (on) => void child?.process.send({ faults: on }),
    async [Symbol.asyncDispose]() {
      await admin.close();
      await Promise.all([...proxies].map((proxy) => proxy[Symbol.asyncDispose]()));
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export async function startRealPlane(): Promise<FleetPlane> {
  const outage = await startOutagePlane();
  const { kubeconfig, server } = outage.plane;
  const proxies = new Set<TcpProxy>();
  return {
    admin: outage.admin,
    async connect() {
      const proxy = await startTcpProxy(Number(new URL(server).port));
      proxies.add(proxy);
      return {
        proxy,
        kubeconfig: kubeconfig.replaceAll(server, `https://127.0.0.1:${proxy.port}`),
      };
    },
    async kill() {
      outage.killServer();
    },
    start: () => outage.startServer(),
    async [Symbol.asyncDispose]() {
      await Promise.all([...proxies].map((proxy) => proxy[Symbol.asyncDispose]()));
      await outage[Symbol.asyncDispose]();
    },
  };
}
