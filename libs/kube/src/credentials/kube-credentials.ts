import { defined, ensureError, KonvergeError } from "@konverge/core";
import type { Authenticator } from "@kubernetes/client-node/dist/auth.js";
import { AzureAuth } from "@kubernetes/client-node/dist/azure_auth.js";
import type { Cluster, User } from "@kubernetes/client-node/dist/config_types.js";
import { FileAuth } from "@kubernetes/client-node/dist/file_auth.js";
import { GoogleCloudPlatformAuth } from "@kubernetes/client-node/dist/gcp_auth.js";
import { AuthorizationCache, type Authorization } from "./authorization-cache.ts";
import { createExecAuthenticator, describePluginFailure, withExecInfo } from "./exec-plugin.ts";
import { loadKubeconfig, type KubeconfigOptions } from "./kubeconfig.ts";
import { selectProxy } from "./proxy-selection.ts";
import { createTlsReader, REREAD_MS } from "./tls-material.ts";

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
   * @throws KonvergeError `kube_unreachable` if they cannot be obtained, with `retryAfterMs` until they are tried again
   */
  authorize(): Promise<Authorization>;
  /** Obtains new credentials, after a 401 response of the API server. A plugin that just ran is not run again at once. */
  forget(): void;
}

/**
 * Reads a kubeconfig with the authenticators of client-node: exec plugins, token files, auth providers, client
 * certificates. They are imported one by one, because client-node as a whole costs 75 MiB of memory per process.
 * @throws KonvergeError `invalid_config`
 */
export function loadKubeCredentials(
  options: KubeconfigOptions = {},
  clock: () => number = () => performance.now(),
): KubeCredentials {
  const { env = process.env } = options;
  const { context, cluster, user } = loadKubeconfig(options);
  const server = serverOf(cluster);
  const proxyUrl = cluster.proxyUrl || selectProxy(server, env);
  const tls = createTlsReader(cluster, user);
  const select = () => selectAuthenticator(user, () => cache.noteRun());
  let authenticator = select();
  const cache = new AuthorizationCache(
    {
      authorize: async () => {
        const headers: Record<string, string> = {};
        const issued: { headers: Record<string, string>; cert?: string; key?: string } = {
          headers,
        };
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
      },
      renew: () => {
        authenticator = select();
        tls.forget();
      },
      // Without an authenticator only files can change.
      steadyMs: () => (authenticator === undefined ? Math.min(REREAD_MS, tls.againMs) : 0),
    },
    clock,
  );

  return {
    server: `${server.origin}${server.pathname.replace(/\/+$/, "")}`,
    context: context.name,
    ...defined({ namespace: context.namespace, proxyUrl }),
    authorize: () => cache.get(),
    forget: () => cache.noteRejected(),
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

function selectAuthenticator(
  user: User,
  onPluginStart: () => void,
): Authenticator | Promise<Authenticator> | undefined {
  const plugins = [
    new AzureAuth(),
    new GoogleCloudPlatformAuth(),
    createExecAuthenticator({ onStart: onPluginStart }),
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
