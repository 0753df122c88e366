import type { KubeClient } from "@konverge/kube";
import { Deployment, Namespace } from "konverge/kinds";

export const NAMESPACE = "shop";
export const APPS: readonly string[] = ["cart", "search", "web"];
/** Annotation with the image that the operator has seen. */
export const OBSERVED = "shop.example/observed-image";
/** Annotation in which the billing system counts requests. */
const USAGE = "shop.example/usage";
export const USAGE_PATH = "/metadata/annotations/shop.example~1usage";

export const imageOf = (app: string, release: number): string =>
  `registry.example/${app}:${release}`;

/** An app as the API server has it. */
export interface AppState {
  readonly image: string;
  readonly observed: string;
  readonly usage: number;
}

export async function createShop(client: KubeClient): Promise<void> {
  await client.create(Namespace, { metadata: { name: NAMESPACE } });
  for (const name of APPS) {
    const labels = { app: name };
    await client.create(Deployment, {
      metadata: { namespace: NAMESPACE, name },
      spec: {
        replicas: 1,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: { containers: [{ name, image: imageOf(name, 0) }] },
        },
      },
    });
  }
}

export async function readShop(client: KubeClient): Promise<ReadonlyMap<string, AppState>> {
  const apps = await Promise.all(
    APPS.map(async (name): Promise<[string, AppState]> => {
      const { metadata, spec } = await client.get(Deployment, { namespace: NAMESPACE, name });
      const image = spec?.template.spec?.containers[0]?.image ?? "";
      const { [OBSERVED]: observed = "", [USAGE]: usage = "0" } = metadata.annotations ?? {};
      return [name, { image, observed, usage: Number(usage) }];
    }),
  );
  return new Map(apps);
}
