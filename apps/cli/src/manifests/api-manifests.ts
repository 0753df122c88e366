import { clusterOf, type Settings } from "@konverge/contracts";
import { serviceAccount } from "./access-manifests.ts";
import type { Installation, Manifest } from "./manifest.ts";
import { podTemplate, type SecretFile } from "./pod-template.ts";
import { deployment, disruptionBudget, service } from "./worker-manifests.ts";

const PORT = { name: "http", number: 7070 };

/** Returns the HTTP API, without Ingress and without access to the API server. */
export function apiManifests(
  installation: Installation,
  {
    settings,
    redis,
    token,
  }: { readonly settings: Settings; readonly redis: SecretFile; readonly token: SecretFile },
): Manifest[] {
  const account = `${installation.name}-api`;
  const template = podTemplate(installation, {
    component: "api",
    args: ["api"],
    env: {
      // The API has no configuration file.
      KONVERGE_PREFIX: settings.prefix,
      KONVERGE_CLUSTER: clusterOf(settings),
      KONVERGE_RUN_RETENTION: `${settings.runRetention}ms`,
      KONVERGE_API_HOST: "0.0.0.0",
      KONVERGE_API_PORT: String(PORT.number),
      // Until the Service has removed the Pod.
      KONVERGE_API_DRAIN: "10s",
    },
    secrets: [redis, token],
    port: PORT,
    account,
    token: false,
    graceSeconds: 30,
    memoryMiB: 384,
  });
  return [
    // Not that of the workers: the API calls no API server, so its account has no permissions.
    serviceAccount(installation, account),
    deployment(installation, "api", 2, template),
    disruptionBudget(installation, "api"),
    service(installation, "api", PORT),
  ];
}
