import type { KubeConfig } from "@kubernetes/client-node";
import type { IssuedCredential } from "./exec-plugin.ts";
import type { KubeconfigCluster, KubeconfigUser } from "./kubeconfig-entries.ts";

/** The part of client-node's `KubeConfig` that is used. There may be several copies of the class in a process. */
export type KubeConfigObject = Pick<
  KubeConfig,
  | "applyToHTTPSOptions"
  | "getCluster"
  | "getClusters"
  | "getContextObject"
  | "getContexts"
  | "getCurrentContext"
  | "getUser"
>;

/** The headers and the certificate that client-node's authenticators add to a request. */
export interface ForeignCredential extends Pick<IssuedCredential, "cert" | "key"> {
  readonly headers: Readonly<Record<string, string>>;
}

/** Runs the authenticators of a KubeConfig, including those added by `addAuthenticator`. */
export async function authorizeByKubeConfig(
  config: Pick<KubeConfigObject, "applyToHTTPSOptions">,
): Promise<ForeignCredential> {
  const options: Parameters<KubeConfig["applyToHTTPSOptions"]>[0] = {};
  await config.applyToHTTPSOptions(options);
  const { headers, cert, key } = options;
  const texts = Object.entries((headers ?? {}) as Record<string, unknown>).flatMap(
    ([name, value]) => (typeof value === "string" ? [[name, value] as const] : []),
  );
  return {
    headers: Object.fromEntries(texts),
    ...(typeof cert === "string" ? { cert } : {}),
    ...(typeof key === "string" ? { key } : {}),
  };
}

/**
 * Returns a function that authorizes by client-node's auth providers (azure, gcp, oidc). client-node is imported by the
 * first call, because it costs 45 MiB of memory per process, and few kubeconfigs name an auth provider.
 */
export function createProviderAuth(
  cluster: KubeconfigCluster,
  { name, authProvider }: KubeconfigUser,
): () => Promise<ForeignCredential> {
  let loading: Promise<KubeConfig> | undefined;
  const open = async (): Promise<KubeConfig> => {
    const { KubeConfig } = await import("@kubernetes/client-node");
    const config = new KubeConfig();
    config.loadFromOptions({
      // Only headers are taken from it; an http server without this option would be an error.
      clusters: [{ name: cluster.name, server: cluster.server, skipTLSVerify: true }],
      users: [{ name, authProvider }],
      contexts: [{ name, cluster: cluster.name, user: name }],
      currentContext: name,
    });
    return config;
  };
  return async () => authorizeByKubeConfig(await (loading ??= open()));
}
