import {
  ApiException,
  AppsV1Api,
  CoreV1Api,
  CustomObjectsApi,
  PatchStrategy,
  setHeaderOptions,
} from "@kubernetes/client-node";
import type { AttemptKube } from "@konverge/engine";
import type { Site } from "./site.ts";

/** The original with another parameter, and one changed line per API object. */
export async function reconcileSite(kube: AttemptKube, site: Site, group: string): Promise<void> {
  const core = kube.api(CoreV1Api);
  const apps = kube.api(AppsV1Api);
  const sites = kube.api(CustomObjectsApi);

  const { name, namespace } = site.metadata;
  const labels = { site: name };
  const data = { "index.html": site.spec.text };
  try {
    const page = await core.readNamespacedConfigMap({ name, namespace });
    if (page.data?.["index.html"] !== data["index.html"]) {
      await core.replaceNamespacedConfigMap({ name, namespace, body: { ...page, data } });
    }
  } catch (error) {
    if (!(error instanceof ApiException) || error.code !== 404) throw error;
    const body = { metadata: { name, labels }, data };
    await core.createNamespacedConfigMap({ namespace, body });
  }

  const { items } = await apps.listNamespacedDeployment({
    namespace,
    labelSelector: `site=${name}`,
  });
  const [deployment] = items;
  const { replicas } = site.spec;
  if (deployment === undefined) {
    const containers = [{ name: "web", image: "nginx" }];
    const template = { metadata: { labels }, spec: { containers } };
    const spec = { replicas, selector: { matchLabels: labels }, template };
    await apps.createNamespacedDeployment({
      namespace,
      body: { metadata: { name, labels }, spec },
    });
  } else if (deployment.spec?.replicas !== replicas) {
    await apps.patchNamespacedDeployment(
      { name, namespace, body: { spec: { replicas } } },
      setHeaderOptions("Content-Type", PatchStrategy.MergePatch),
    );
  }

  try {
    await core.deleteNamespacedService({ name: `${name}-old`, namespace });
  } catch (error) {
    if (!(error instanceof ApiException) || error.code !== 404) throw error;
  }

  const kind = { group, version: "v1", plural: "widgets", namespace };
  let current = site;
  for (;;) {
    const body = {
      ...current,
      status: { replicas, since: deployment?.metadata?.creationTimestamp },
    };
    try {
      await sites.replaceNamespacedCustomObjectStatus({ ...kind, name, body });
      return;
    } catch (error) {
      if (!(error instanceof ApiException) || error.code !== 409) throw error;
      current = (await sites.getNamespacedCustomObject({ ...kind, name })) as Site;
    }
  }
}
