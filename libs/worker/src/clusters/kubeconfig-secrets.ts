import { ensureError, invalidConfig, type ApiObject } from "@konverge/core";
import { createReflector } from "@konverge/kube";
import { Secret } from "@konverge/kube/kinds";
import { checkProvided } from "./check-provided.ts";
import type { ClusterProvider, ProvidedCluster } from "./cluster-provider.ts";
import { findSecretsIssues, type KubeconfigSecretsOptions } from "./kubeconfig-secrets-options.ts";

const LABELS = "konverge.dev/cluster=true";

/**
 * Provides a cluster for each Secret of a namespace in a home cluster. Secrets may be added, changed and removed while workers
 * run. Kubeconfigs that run commands or name files of the worker are rejected.
 */
export function kubeconfigSecrets(given: KubeconfigSecretsOptions): ClusterProvider {
  const issues = findSecretsIssues(given);
  if (issues.length > 0) throw invalidConfig(issues);
  const { namespace, labels = LABELS, home = {} } = given;
  return {
    description: `Secrets in namespace ${namespace}`,
    home,
    secretsNamespace: namespace,
    async follow({ onClusters, signal, log, connectHome }) {
      const client = await connectHome();
      const clusters = new Map<string, ProvidedCluster | Error>();
      const report = () => onClusters(new Map(clusters));
      const reflector = createReflector({
        client: client.scoped({ priority: "critical" }),
        type: Secret,
        namespace,
        labelSelector: labels,
        onEvent({ kind, object, initial }) {
          const name = nameOf(object, given.suffix);
          if (name === undefined) return;
          if (kind === "deleted") clusters.delete(name);
          else clusters.set(name, readSecret(name, object, given));
          if (!initial) report();
        },
        // The clusters stay: Secrets that cannot be listed are not gone.
        onError: (error) => log.warn({ err: error, namespace }, "clusters not readable"),
      });
      reflector.start();
      signal.addEventListener("abort", () => void reflector.stop(), { once: true });
      await reflector.synced;
      report();
    },
  };
}

function nameOf({ metadata }: ApiObject, suffix = ""): string | undefined {
  const { name } = metadata;
  if (!name.endsWith(suffix) || name === suffix) return undefined;
  return name.slice(0, name.length - suffix.length);
}

function readSecret(
  name: string,
  secret: ApiObject,
  { key = "kubeconfig", allowExec = false, options }: KubeconfigSecretsOptions,
): ProvidedCluster | Error {
  try {
    const { data } = secret as { readonly data?: Readonly<Record<string, string>> };
    const encoded = data?.[key];
    if (encoded === undefined) {
      throw new Error(`Secret "${secret.metadata.name}" has no key "${key}" in its data`);
    }
    const { labels = {} } = secret.metadata;
    const text = Buffer.from(encoded, "base64").toString("utf8");
    return checkProvided(name, {
      kubeconfig: { text, confined: { allowExec } },
      options: options?.(name, labels) ?? { labels },
    });
  } catch (error) {
    return ensureError(error);
  }
}
