import { defined, ensureError, KonvergeError } from "@konverge/core";
import { assertConfined, type Confinement } from "./assert-confined.ts";
import { AuthorizationCache, type Authorization } from "./authorization-cache.ts";
import {
  authorizeByKubeConfig,
  createProviderAuth,
  type ForeignCredential,
  type KubeConfigObject,
} from "./client-node-auth.ts";
import { createExecPlugin, describePluginFailure, type IssuedCredential } from "./exec-plugin.ts";
import { contextOfKubeConfig } from "./kube-config-object.ts";
import { loadKubeconfig, type KubeconfigContext, type KubeconfigOptions } from "./kubeconfig.ts";
import type { ExecConfig, KubeconfigCluster, KubeconfigUser } from "./kubeconfig-entries.ts";
import { selectProxy } from "./proxy-selection.ts";
import { createTlsReader, REREAD_MS } from "./tls-material.ts";
import { createTokenFile } from "./token-file.ts";

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

export interface KubeCredentialsOptions extends KubeconfigOptions {
  /** A loaded `KubeConfig` of client-node, with its authenticators. Replaces the other sources. */
  readonly kubeConfig?: KubeConfigObject;
  /** For a kubeconfig that others may write: rejects files of this machine, and commands unless allowed. Default: no limit. */
  readonly confined?: Confinement;
}

/** Whatever issues the credentials of a user, beyond its static fields. */
interface Issuer {
  readonly issue: () => Promise<IssuedCredential & Partial<ForeignCredential>>;
  /** Drops cached credentials. */
  readonly forget: () => void;
  /** False if it only reads files. */
  readonly isActive: boolean;
}

/**
 * Loads the credentials of a kubeconfig: exec plugins, token files, auth providers, client certificates. client-node is
 * loaded only for an auth provider.
 * @throws KonvergeError `invalid_config`
 */
export function loadKubeCredentials(
  options: KubeCredentialsOptions = {},
  clock: () => number = () => performance.now(),
): KubeCredentials {
  const { env = process.env, kubeConfig } = options;
  const found =
    kubeConfig === undefined
      ? loadKubeconfig(options)
      : contextOfKubeConfig(kubeConfig, options.context);
  const { context, cluster, user } = found;
  if (options.confined !== undefined) assertConfined(found, options.confined);
  const server = serverOf(cluster);
  const proxyUrl = proxyOf(cluster) ?? selectProxy(server, env);
  const tls = createTlsReader(cluster, user);
  const issuer = selectIssuer(found, kubeConfig, () => cache.noteRun());
  const cache = new AuthorizationCache(
    {
      authorize: async () => {
        try {
          const issued = await issuer.issue();
          return { headers: headersOf(user, issued), tls: tls.read(issued) };
        } catch (error) {
          throw credentialsFailed(user, error);
        }
      },
      renew: () => {
        issuer.forget();
        tls.forget();
      },
      // Without a plugin or a provider only files can change.
      steadyMs: () => (issuer.isActive ? 0 : Math.min(REREAD_MS, tls.againMs)),
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

function serverOf({ name, server }: KubeconfigCluster): URL {
  const url = URL.parse(server);
  if (url !== null && (url.protocol === "https:" || url.protocol === "http:")) return url;
  throw new KonvergeError(
    "invalid_config",
    `server "${server}" of cluster "${name}" in the kubeconfig is not an http or https URL`,
  );
}

/** Schemes as in client-go. The URL may contain a password. */
function proxyOf({ name, proxyUrl }: KubeconfigCluster): string | undefined {
  if (proxyUrl === undefined || proxyUrl === "") return undefined;
  if (/^(https?|socks5):\/\/./i.test(proxyUrl) && URL.canParse(proxyUrl)) return proxyUrl;
  throw new KonvergeError(
    "invalid_config",
    `the proxy-url of cluster "${name}" in the kubeconfig is not an http, https or socks5 URL, such as http://proxy:3128`,
  );
}

/** A static token takes precedence over an issued one, as in client-go. */
function headersOf(
  { username, password = "", token, impersonateUser }: KubeconfigUser,
  issued: IssuedCredential & Partial<ForeignCredential>,
): Record<string, string> {
  const headers: Record<string, string> = {};
  if (username !== undefined) headers["Authorization"] = basic(username, password);
  Object.assign(headers, issued.headers);
  const bearer = token ?? issued.token;
  if (bearer !== undefined) headers["Authorization"] = `Bearer ${bearer}`;
  if (impersonateUser !== undefined) headers["Impersonate-User"] = impersonateUser;
  for (const [name, value] of Object.entries(headers)) headers[name] = value.trim();
  return headers;
}

const PROVIDERS: ReadonlySet<string> = new Set(["azure", "gcp", "oidc"]);

/** @throws KonvergeError `invalid_config` for an unknown auth provider */
function selectIssuer(
  { cluster, user }: KubeconfigContext,
  kubeConfig: KubeConfigObject | undefined,
  onPluginStart: () => void,
): Issuer {
  const { authProvider, exec, tokenFile, name } = user;
  const nothing = () => undefined;
  if (kubeConfig !== undefined) {
    return {
      issue: () => authorizeByKubeConfig(kubeConfig),
      forget: nothing,
      isActive: authProvider !== undefined || exec !== undefined,
    };
  }
  const { name: provider, config } = authProvider ?? {};
  if (provider !== undefined && PROVIDERS.has(provider)) {
    return { issue: createProviderAuth(cluster, user), forget: nothing, isActive: true };
  }
  const plugin = exec ?? config?.["exec"];
  if (typeof plugin === "object" && plugin !== null) {
    const command = createExecPlugin({ exec: plugin, cluster, onStart: onPluginStart });
    return { issue: () => command.issue(), forget: () => command.forget(), isActive: true };
  }
  const file = tokenFile ?? config?.["tokenFile"];
  if (typeof file === "string") {
    const token = createTokenFile(file);
    return {
      issue: async () => ({ token: token.read() }),
      forget: () => token.forget(),
      isActive: false,
    };
  }
  if (provider === undefined) return { issue: async () => ({}), forget: nothing, isActive: false };
  throw new KonvergeError(
    "invalid_config",
    `auth-provider "${provider}" of user "${name}" in the kubeconfig is not supported; use an exec plugin`,
  );
}

function basic(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
}

function credentialsFailed(user: KubeconfigUser, error: unknown): KonvergeError {
  const exec = user.exec ?? user.authProvider?.config?.["exec"];
  const command = (exec as ExecConfig | null | undefined)?.command;
  const by = command === undefined ? "" : ` by plugin "${command}"`;
  const why = command === undefined ? ensureError(error).message : describePluginFailure(error);
  // The cause is omitted: the plugin's output may contain the credential after its first line.
  return new KonvergeError(
    "kube_unreachable",
    `no credentials for user "${user.name}"${by}: ${why.trim().split("\n", 1)[0] ?? ""}`,
  );
}
