import { clusterOf, type Settings } from "@konverge/contracts";
import type { AccessRule } from "@konverge/worker";
import { bind, serviceAccount } from "./access-manifests.ts";
import { labelsOf, type Installation, type Manifest } from "./manifest.ts";
import { podTemplate, type SecretFile } from "./pod-template.ts";
import { signInEnv, signInOf, signInSecret } from "./sign-in-manifests.ts";
import { deployment, disruptionBudget, service } from "./worker-manifests.ts";

const PORT = { name: "http", number: 7070 };

/** Asks the API server for the user of a token and for the rights of a user, as the built-in role system:auth-delegator. */
export const authReviewRules: readonly AccessRule[] = [
  { apiGroups: ["authentication.k8s.io"], resources: ["tokenreviews"], verbs: ["create"] },
  { apiGroups: ["authorization.k8s.io"], resources: ["subjectaccessreviews"], verbs: ["create"] },
];

/** Returns the HTTP API, without Ingress. It has access to the API server only if it accepts Kubernetes tokens. */
export function apiManifests(
  installation: Installation,
  {
    settings,
    redis,
    token,
  }: { readonly settings: Settings; readonly redis: SecretFile; readonly token: SecretFile },
): Manifest[] {
  const account = `${installation.name}-api`;
  const { kubeAudiences: audiences } = settings;
  const signIn = signInOf(settings);
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
      ...(audiences === undefined ? {} : { KONVERGE_KUBE_AUDIENCES: audiences.join(",") }),
      ...(signIn === undefined ? {} : signInEnv(signIn)),
    },
    secrets: [redis, token, ...(signIn === undefined ? [] : [signInSecret(token.secret)])],
    port: PORT,
    account,
    token: audiences !== undefined,
    graceSeconds: 30,
    memoryMiB: 384,
  });
  return [
    // Not that of the workers: the API changes no objects.
    serviceAccount(installation, account),
    ...(audiences === undefined ? [] : reviewAccess(installation, account)),
    deployment(installation, "api", 2, template),
    disruptionBudget(installation, "api"),
    service(installation, "api", PORT),
  ];
}

function reviewAccess(installation: Installation, account: string): Manifest[] {
  const { namespace } = installation;
  const metadata = { name: `${namespace}-${account}`, labels: labelsOf(installation) };
  const subjects = [{ kind: "ServiceAccount", name: account, namespace }];
  return bind("ClusterRole", metadata, { rules: authReviewRules, subjects });
}
