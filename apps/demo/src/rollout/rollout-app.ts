import { formatApiVersion, type ResourceType } from "@konverge/core";
import type { KubeClient } from "@konverge/kube";
import { Deployment, Namespace } from "konverge/kinds";
import { pollUntil } from "../stage/poll-until.ts";

export const APP = { namespace: "shop", name: "web" };
const OLD_IMAGE = "registry.example/web:1";
export const NEW_IMAGE = "registry.example/web:2";
export const REPLICAS = 3;
/** The annotation in which the example counts rollouts. */
const ROLLOUTS = "demo.konverge.dev/rollouts";

/** The state of the app on a cluster. */
export interface AppState {
  readonly image: string;
  readonly available: number;
  /** Number of rollouts, by the count in the object. */
  readonly rollouts: number;
}

/** The previously deployed app. */
export async function deployOldApp(client: KubeClient, signal: AbortSignal): Promise<void> {
  const labels = { app: APP.name };
  await create(client, Namespace, { metadata: { name: APP.namespace } });
  await create(client, Deployment, {
    metadata: APP,
    spec: {
      replicas: REPLICAS,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: APP.name, image: OLD_IMAGE }] },
      },
    },
  });
  const isUp = async () => (await readApp(client)).available === REPLICAS;
  await pollUntil("the old version is up", isUp, { signal });
}

export async function readApp(client: KubeClient): Promise<AppState> {
  const { metadata, spec, status } = await client.get(Deployment, APP);
  return {
    image: spec?.template.spec?.containers[0]?.image ?? "",
    available: status?.availableReplicas ?? 0,
    rollouts: Number(metadata.annotations?.[ROLLOUTS] ?? 0),
  };
}

async function create(client: KubeClient, type: ResourceType, object: object): Promise<void> {
  const { group, version, kind } = type;
  const whole = { apiVersion: formatApiVersion(group, version), kind, ...object };
  await client.create(type, whole as Parameters<typeof client.create>[1]);
}
