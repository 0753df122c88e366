import { defined, ensureError, KonvergeError } from "@konverge/core";
import type { Authenticator } from "@kubernetes/client-node/dist/auth.js";
import { AzureAuth } from "@kubernetes/client-node/dist/azure_auth.js";
import type { Cluster, User } from "@kubernetes/client-node/dist/config_types.js";
import { FileAuth } from "@kubernetes/client-node/dist/file_auth.js";
import { GoogleCloudPlatformAuth } from "@kubernetes/client-node/dist/gcp_auth.js";
import { createExecAuthenticator, describePluginFailure, withExecInfo } from "./exec-plugin.ts";
import { loadKubeconfig, type KubeconfigOptions } from "./kubeconfig.ts";
import { selectProxy } from "./proxy-selection.ts";
import { createTlsReader, REREAD_MS, type TlsMaterial } from "./tls-material.ts";

export interface Authorization {
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: TlsMaterial;
}

/** The address of an API server and the credentials for it. */
export interface KubeCredentials {
  /** URL without a trailing slash. */
  readonly server: string;
  /** Name of the kubeconfig context. */
  readonly context: string;
  /** Namespace of the context. */
  readonly namespace?: string;
  readonly proxyUrl?: string;
  /**
   * Returns the credentials for the next request. Tokens are read again and plugins run again when they are due.
   * @throws KonvergeError `kube_unreachable` if they cannot be obtained
   */
  authorize(): Promise<Authorization>;
  /** Clears the cache, after a 401 response of the API server. */
  forget(): void;
}

/**
 * Reads a kubeconfig with the authenticators of client-node: exec plugins, token files, auth providers, client
 * certificates. They are imported one by one, because client-node as a whole costs 75 MiB of memory per process.
 * @throws KonvergeError `invalid_config`
 */
export function loadKubeCredentials(options: KubeconfigOptions = {}): KubeCredentials {
  const { env = process.env } = options;
  const { context, cluster, user } = loadKubeconfig(options);
  const server = serverOf(cluster);
  const proxyUrl = cluster.proxyUrl || selectProxy(server, env);
  const tls = createTlsReader(cluster, user);
  let authenticator = selectAuthenticator(user);
  let pending: Promise<Authorization> | undefined;
  /** Without an authenticator only files can change; they are checked periodically. */
  let steady: Promise<Authorization> | undefined;
  let steadyUntilMs = 0;

  const authorize = async (): Promise<Authorization> => {
    const headers: Record<string, string> = {};
    const issued: { headers: Record<string, string>; cert?: string; key?: string } = { headers };
    try {
      if (user.username) headers["Authorization"] = basic(user.username, user.password ?? "");
      if (authenticator !== undefined) {
        await (await authenticator).applyAuthentication(withExecInfo(user, cluster), issued);
      }
      if (user.token) headers["Authorization"] = `Bearer ${user.token}`;
      if (user.impersonateUser) headers["Impersonate-User"] = user.impersonateUser;
      for (const [name, value] of Object.entries(headers)) headers[name] = value.trim();
      return { headers, tls: tls.read(issued) };
    } catch (error) {
      throw credentialsFailed(user, error);
    }
  };

  return {
    server: `${server.origin}${server.pathname.replace(/\/+$/, "")}`,
    context: context.name,
    ...defined({ namespace: context.namespace, proxyUrl }),
    authorize: () => {
      if (steady !== undefined && performance.now() < steadyUntilMs) return steady;
      // Concurrent calls share one run of a plugin.
      pending ??= authorize().finally(() => {
        pending = undefined;
      });
      if (authenticator === undefined) {
        steady = pending;
        steadyUntilMs = performance.now() + Math.min(REREAD_MS, tls.againMs);
        pending.catch(() => {
          steady = undefined;
        });
      }
      return pending;
    },
    forget: () => {
      authenticator = selectAuthenticator(user);
      steady = undefined;
      tls.forget();
    },
  };
}

function serverOf({ name, server }: Cluster): URL {
  const url = URL.parse(server);
  if (url !== null && (url.protocol === "https:" || url.protocol === "http:")) return url;
  throw new KonvergeError(
    "invalid_config",
    `server "${server}" of cluster "${name}" in the kubeconfig is not an http or https URL`,
  );
}

function selectAuthenticator(user: User): Authenticator | Promise<Authenticator> | undefined {
  const plugins = [
    new AzureAuth(),
    new GoogleCloudPlatformAuth(),
    createExecAuthenticator(),
    new FileAuth(),
  ];
  const found = plugins.find((plugin) => plugin.isAuthProvider(user));
  if (found !== undefined) return found;
  const provider = (user.authProvider as { readonly name?: string } | null | undefined)?.name;
  if (provider === undefined) return undefined;
  if (provider === "oidc") return lazyOidc();
  throw new KonvergeError(
    "invalid_config",
    `auth-provider "${provider}" of user "${user.name}" in the kubeconfig is not supported; use an exec plugin`,
  );
}

/** Imported on demand: the only authenticator that loads all of client-node, and a rarely used one. */
function lazyOidc(): Promise<Authenticator> {
  const loaded = import("@kubernetes/client-node/dist/oidc_auth.js").then(
    ({ OpenIDConnectAuth }): Authenticator => new OpenIDConnectAuth(),
  );
  // The call that authorizes receives the failure; until then there is no listener.
  loaded.catch(() => undefined);
  return loaded;
}

function basic(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
}

function credentialsFailed(user: User, error: unknown): KonvergeError {
  const command = (user.exec as { readonly command?: string } | null | undefined)?.command;
  const by = command === undefined ? "" : ` by plugin "${command}"`;
  const why = command === undefined ? ensureError(error).message : describePluginFailure(error);
  // The cause is omitted: the plugin's output may contain the credential after its first line.
  return new KonvergeError(
    "kube_unreachable",
    `no credentials for user "${user.name}"${by}: ${why.trim().split("\n", 1)[0] ?? ""}`,
  );
}
