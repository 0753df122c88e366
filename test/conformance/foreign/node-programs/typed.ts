import { AppsV1Api, PatchStrategy, PolicyV1Api, setHeaderOptions } from "@kubernetes/client-node";
import { outcomeOf, type World } from "./world.ts";

/** The name of client-node for the parameter `continue`. */
const CONTINUE = "_continue";

/** Typed calls: patches, pages, subresources, deletions, dates. */
export async function typed(world: World): Promise<void> {
  const { config, core, namespace, say } = world;
  const apps = config.makeApiClient(AppsV1Api);
  const show = async (title: string, call: () => Promise<unknown>) =>
    say(`${title}: ${await outcomeOf(call)}`);
  const container = { name: "web", image: "example.com/web:1", env: [{ name: "A", value: "1" }] };
  const template = { metadata: { labels: { app: "web" } }, spec: { containers: [container] } };
  const spec = { replicas: 1, selector: { matchLabels: { app: "web" } }, template };
  await show("deployment", () =>
    apps.createNamespacedDeployment({ namespace, body: { metadata: { name: "web" }, spec } }),
  );
  const patch = (body: object, strategy: PatchStrategy, more: object = {}) =>
    apps.patchNamespacedDeployment(
      { name: "web", namespace, body, ...more },
      setHeaderOptions("Content-Type", strategy),
    );
  const side = { name: "side", image: "example.com/side:1" };
  await show("strategic", () =>
    patch(
      { spec: { template: { spec: { containers: [side] } } } },
      PatchStrategy.StrategicMergePatch,
    ),
  );
  await show("apply without manager", () =>
    patch(
      { apiVersion: "apps/v1", kind: "Deployment", spec: { replicas: 2 } },
      PatchStrategy.ServerSideApply,
    ),
  );
  await show("apply with conflict", () =>
    patch(
      { apiVersion: "apps/v1", kind: "Deployment", spec: { replicas: 2 } },
      PatchStrategy.ServerSideApply,
      { fieldManager: "me" },
    ),
  );
  await show("unknown patch", () => patch({ spec: {} }, "text/plain" as PatchStrategy));
  await show("scale", () =>
    apps.replaceNamespacedDeploymentScale({
      name: "web",
      namespace,
      body: { metadata: { name: "web", namespace }, spec: { replicas: 3 } },
    }),
  );
  const created = (await apps.readNamespacedDeployment({ name: "web", namespace })).metadata;
  say(`dates: ${created?.creationTimestamp instanceof Date}, generation ${created?.generation}`);
  await pages(world);
  await show("pod", () =>
    core.createNamespacedPod({
      namespace,
      body: {
        metadata: { name: "box", finalizers: ["example.com/hold"] },
        spec: { containers: [container] },
      },
    }),
  );
  await show("evict", () =>
    core.createNamespacedPodEviction({
      name: "box",
      namespace,
      body: { metadata: { name: "box" } },
    }),
  );
  await show("delete with wrong uid", () =>
    core.deleteNamespacedPod({ name: "box", namespace, body: { preconditions: { uid: "other" } } }),
  );
  await show("delete", () =>
    core.deleteNamespacedPod({ name: "box", namespace, gracePeriodSeconds: 0 }),
  );
  await show("remove the finalizer", () =>
    core.patchNamespacedPod({
      name: "box",
      namespace,
      body: [{ op: "remove", path: "/metadata/finalizers" }],
    }),
  );
  await show("gone", () => core.readNamespacedPod({ name: "box", namespace }));
  await show("budgets", () =>
    config.makeApiClient(PolicyV1Api).listNamespacedPodDisruptionBudget({ namespace }),
  );
  await show("foreground", () =>
    apps.deleteNamespacedDeployment({ name: "web", namespace, propagationPolicy: "Orphan" }),
  );
}

async function pages({ core, namespace, say }: World): Promise<void> {
  for (let index = 0; index < 5; index++) {
    const metadata = { name: `page-${index}`, labels: { page: "yes" } };
    await core.createNamespacedConfigMap({ namespace, body: { metadata } });
  }
  let token: string | undefined;
  do {
    const page = await core.listNamespacedConfigMap({
      namespace,
      limit: 2,
      labelSelector: "page",
      ...(token === undefined ? {} : { [CONTINUE]: token }),
    });
    const names = page.items.map(({ metadata }) => metadata?.name);
    say(`page ${names.join(" ")}, ${page.metadata?.remainingItemCount ?? "no"} more`);
    token = page.metadata?.[CONTINUE] || undefined;
  } while (token !== undefined);
  say(
    `bad token: ${await outcomeOf(() => core.listNamespacedConfigMap({ namespace, [CONTINUE]: "x" }))}`,
  );
}
