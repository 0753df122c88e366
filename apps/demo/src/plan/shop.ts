import { defined } from "@konverge/core";
import type { KubeClient } from "@konverge/kube";
import { Deployment, Namespace, Service } from "konverge/kinds";

export const NAMESPACES: readonly string[] = ["team-a", "team-b", "team-c", "team-d"];
/** The namespace whose plans are approved. */
export const APPROVED = "team-b";
/** Label of a Service with the version of the operator. */
const VERSION = "shop.example/operator";
/** One of so many apps is stopped. */
const STOPPED_EVERY = 17;

/** Numbers of apps. */
export interface ShopSize {
  /** In each namespace. */
  readonly apps: number;
  readonly stopped: number;
  /** In all namespaces. */
  readonly allApps: number;
  readonly allStopped: number;
}

/** Spreads apps over the namespaces. */
export function sizeOf(objects: number): ShopSize {
  const apps = Math.ceil(objects / NAMESPACES.length);
  const stopped = Math.ceil(apps / STOPPED_EVERY);
  const each = NAMESPACES.length;
  return { apps, stopped, allApps: each * apps, allStopped: each * stopped };
}

/** Objects that the demo creates at the same time. */
const WIDTH = 16;

export async function createShop(
  client: KubeClient,
  { apps: count }: Pick<ShopSize, "apps">,
): Promise<void> {
  for (const name of NAMESPACES) await client.create(Namespace, { metadata: { name } });
  const apps = NAMESPACES.flatMap((namespace) =>
    Array.from({ length: count }, (_, index) => ({ namespace, index })),
  );
  for (let from = 0; from < apps.length; from += WIDTH) {
    await Promise.all(apps.slice(from, from + WIDTH).map((app) => createApp(client, app)));
  }
}

async function createApp(
  client: KubeClient,
  { namespace, index }: { readonly namespace: string; readonly index: number },
): Promise<void> {
  const name = `app-${index + 1}`;
  const labels = { app: name };
  await client.create(Deployment, {
    metadata: { namespace, name },
    spec: {
      replicas: index % STOPPED_EVERY === 0 ? 0 : 1,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: "app", image: "registry.example/app:1" }] },
      },
    },
  });
}

/** Returns the version labels of all Services by their namespace and name. */
export async function readServices(
  client: KubeClient,
): Promise<ReadonlyMap<string, string | undefined>> {
  const { items } = await client.list(Service, { labelSelector: VERSION });
  return new Map(
    items.map(({ metadata: { namespace = "", name, labels } }) => [
      `${namespace}/${name}`,
      labels?.[VERSION],
    ]),
  );
}

/** The Service of an app, as a version of the operator applies it. */
export function serviceOf(
  { namespace, name }: { readonly namespace?: string | undefined; readonly name: string },
  version: string,
) {
  return {
    metadata: { name, ...defined({ namespace }), labels: { [VERSION]: version } },
    spec: { selector: { app: name }, ports: [{ port: 80 }] },
  };
}
