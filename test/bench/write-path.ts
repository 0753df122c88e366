import { CoreV1Api, KubeConfig } from "@kubernetes/client-node";
import { startControlPlane } from "@konverge/infra-envtest";
import { createLocalGate, type ApiObject } from "@konverge/core";
import { createKubeClient, loadKubeCredentials } from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import { openBareClient, type BareClient } from "./bare-client.ts";
import { contest, rateOf, type BenchOptions, type Figure } from "./measure.ts";

const WIDTH = 16;
const OPERATIONS = 480;
const ROUNDS = 5;
const namespace = "default";
const nameOf = (lane: number) => `bench-${lane}`;

/** Measures read-modify-write of 16 objects, 16 at a time, on a real API server: GET, change one value, write. */
export async function benchWritePath({ log }: BenchOptions): Promise<Figure[]> {
  await using plane = await startControlPlane({ log });
  const ours = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigPath: plane.kubeconfigPath }),
    gate: createLocalGate({ ratePerSecond: 1e6, burst: 1e6 }),
    userAgent: "konverge-bench",
  });
  const bare = openBareClient(plane.kubeconfig, 64);
  const config = new KubeConfig();
  config.loadFromString(plane.kubeconfig);
  const theirs = config.makeApiClient(CoreV1Api);
  try {
    for (let lane = 0; lane < WIDTH; lane++) {
      const metadata = { namespace, name: nameOf(lane) };
      await ours.create(ConfigMap, { metadata, data: { count: "0" } });
    }
    let count = 0;
    /** What client-node's users write. */
    const readAndReplace = (api: CoreV1Api) => () =>
      rateOf(OPERATIONS, WIDTH, async (lane) => {
        const name = nameOf(lane);
        const body = await api.readNamespacedConfigMap({ namespace, name });
        body.data = { ...body.data, count: String(++count) };
        await api.replaceNamespacedConfigMap({ namespace, name, body });
      });
    const ported = await contest({
      suite: "write-path",
      case: "read-modify-write by CoreV1Api, 16 at a time",
      metric: "rate",
      unit: "1/s",
      rounds: ROUNDS,
      ours: readAndReplace(ours.api(CoreV1Api)),
      peers: [{ name: "@kubernetes/client-node", goal: 4, side: readAndReplace(theirs) }],
    });
    const own = await contest({
      suite: "write-path",
      case: "read-modify-write, 16 at a time",
      metric: "rate",
      unit: "1/s",
      rounds: ROUNDS,
      ours: () =>
        rateOf(OPERATIONS, WIDTH, (lane) =>
          ours.mutate(ConfigMap, { namespace, name: nameOf(lane) }, (draft) => {
            draft.data = { ...draft.data, count: String(++count) };
          }),
        ),
      peers: [
        {
          name: "@kubernetes/client-node",
          goal: 4,
          side: readAndReplace(theirs),
        },
        {
          name: "undici, the same requests",
          goal: 0.9,
          side: () =>
            rateOf(OPERATIONS, WIDTH, (lane) => countUp(bare, nameOf(lane), String(++count))),
        },
      ],
    });
    return [...ported, ...own];
  } finally {
    await ours.close();
    await bare.close();
  }
}

/** The minimal code for the same requests: GET, parse, merge patch with resourceVersion and uid. */
async function countUp(bare: BareClient, name: string, count: string): Promise<void> {
  const path = `/api/v1/namespaces/${namespace}/configmaps/${name}`;
  const { metadata } = (await bare.send("GET", path)) as ApiObject;
  const { resourceVersion, uid } = metadata;
  await bare.send("PATCH", path, { metadata: { resourceVersion, uid }, data: { count } });
}
