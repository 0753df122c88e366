import { ensureError, invalidConfig, type ApiObject } from "@konverge/core";
import { createReflector, type Confinement } from "@konverge/kube";
import { Secret } from "@konverge/kube/kinds";
import { checkProvided } from "./check-provided.ts";
import type {
  ClusterProvider,
  HomeCluster,
  ProvidedCluster,
  ProvidedOptions,
} from "./cluster-provider.ts";

/** The options of `kubeconfigSecrets`. */
export interface KubeconfigSecretsOptions extends Confinement {
  /** The namespace of the Secrets in the home cluster. */
  readonly namespace: string;
  /** Label selector of the Secrets. Default `konverge.dev/cluster=true`. */
  readonly labels?: string;
  /** Key of the kubeconfig in the data of a Secret. Default `kubeconfig`. */
  readonly key?: string;
  /**
   * Suffix of the Secrets' names. Other Secrets are ignored; the name of the cluster is the part before the suffix. Default:
   * none.
   */
  readonly suffix?: string;
  /** The cluster with the Secrets, named by the setting `cluster`. Default: found as without a provider. */
  readonly home?: HomeCluster;
  /** Limits and labels of a cluster. Default: the labels of the Secret. */
  readonly options?: (name: string, labels: Readonly<Record<string, string>>) => ProvidedOptions;
}

const LABELS = "konverge.dev/cluster=true";

/**
 * Provides a cluster for each Secret of a namespace in a home cluster. Secrets may be added, changed and removed while workers
 * run. Kubeconfigs that run commands or name files of the worker are rejected.
 */
export function kubeconfigSecrets(given: KubeconfigSecretsOptions): ClusterProvider {
  const { namespace, labels = LABELS, home = {} } = given;
  if (typeof namespace !== "string" || namespace === "") {
    const detail = "clusters.namespace: must be the namespace of the Secrets";
    throw invalidConfig([{ pointer: "/clusters/namespace", detail }]);
  }
  return {
    description: `Secrets in namespace ${namespace}`,
    home,
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
