import { readFileSync } from "node:fs";
import { ensureError, KonvergeError } from "@konverge/core";
import type { Authenticator } from "@kubernetes/client-node/dist/auth.js";
import { AzureAuth } from "@kubernetes/client-node/dist/azure_auth.js";
import type { Cluster, User } from "@kubernetes/client-node/dist/config_types.js";
import { ExecAuth } from "@kubernetes/client-node/dist/exec_auth.js";
import { FileAuth } from "@kubernetes/client-node/dist/file_auth.js";
import { GoogleCloudPlatformAuth } from "@kubernetes/client-node/dist/gcp_auth.js";
import { loadKubeconfig, type KubeconfigOptions } from "./kubeconfig.ts";
import { selectProxy } from "./proxy-selection.ts";

/** What TLS needs. The same object comes back as long as nothing in it changed. */
export interface TlsMaterial {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

export interface Authorization {
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: TlsMaterial;
}

/** Where an API server is and how to be let in. */
export interface KubeCredentials {
  /** URL without a trailing slash. */
  readonly server: string;
  /** Name of the kubeconfig's context. */
  readonly context: string;
  /** Namespace of the context. */
  readonly namespace?: string;
  readonly proxyUrl?: string;
  /**
   * Credentials for the next request: tokens are read again, plugins run again, when they are due.
   * @throws KonvergeError `kube_unreachable` when they cannot be had
   */
  authorize(): Promise<Authorization>;
  /** Drops what is cached, after the API server answered 401. */
  forget(): void;
}

/** Certificates on disk are looked at again after this time, as client-go does with tokens. */
const REREAD_MS = 60_000;

/**
 * Reads a kubeconfig with the authenticators of client-node: exec plugins, token files, auth providers, client certificates.
 * They are imported one by one, because client-node as a whole costs 75 MiB of memory in each process.
 * @throws KonvergeError `invalid_config`
 */
export function loadKubeCredentials(options: KubeconfigOptions = {}): KubeCredentials {
  const { env = process.env } = options;
  const { context, cluster, user } = loadKubeconfig(options);
  const server = serverOf(cluster);
  const proxyUrl = cluster.proxyUrl || selectProxy(server, env);
  const readTls = createTlsReader(cluster, user);
  let authenticator = selectAuthenticator(user);
  let pending: Promise<Authorization> | undefined;
  /** Without an authenticator only files can change, and those are looked at once in a while. */
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
      return { headers, tls: readTls(issued) };
    } catch (error) {
      throw credentialsFailed(user, error);
    }
  };

  return {
    server: `${server.origin}${server.pathname.replace(/\/+$/, "")}`,
    context: context.name,
    ...(context.namespace === undefined ? {} : { namespace: context.namespace }),
    ...(proxyUrl === undefined ? {} : { proxyUrl }),
    authorize: () => {
      if (steady !== undefined && performance.now() < steadyUntilMs) return steady;
      // Calls at the same time share one run of a plugin.
      pending ??= authorize().finally(() => {
        pending = undefined;
      });
      if (authenticator === undefined) {
        steady = pending;
        steadyUntilMs = performance.now() + REREAD_MS;
        pending.catch(() => {
          steady = undefined;
        });
      }
      return pending;
    },
    forget: () => {
      authenticator = selectAuthenticator(user);
      steady = undefined;
    },
  };
}

function serverOf({ name, server }: Cluster): URL {
  const url = URL.parse(server);
  if (url !== null && (url.protocol === "https:" || url.protocol === "http:")) return url;
  throw new KonvergeError(
    "invalid_config",
    `server "${server}" of cluster "${name}" in the kubeconfig is not a URL of http or https`,
  );
}

function selectAuthenticator(user: User): Authenticator | Promise<Authenticator> | undefined {
  const plugins = [new AzureAuth(), new GoogleCloudPlatformAuth(), new ExecAuth(), new FileAuth()];
  const found = plugins.find((plugin) => plugin.isAuthProvider(user));
  if (found !== undefined) return found;
  const provider = (user.authProvider as { readonly name?: string } | null | undefined)?.name;
  if (provider === undefined) return undefined;
  if (provider === "oidc") return lazyOidc();
  throw new KonvergeError(
    "invalid_config",
    `auth-provider "${provider}" of user "${user.name}" in the kubeconfig is not supported; use exec`,
  );
}

/** The only authenticator that drags in all of client-node, and hardly anybody has it. */
function lazyOidc(): Promise<Authenticator> {
  const loaded = import("@kubernetes/client-node/dist/oidc_auth.js").then(
    ({ OpenIDConnectAuth }): Authenticator => new OpenIDConnectAuth(),
  );
  // Whoever authorizes gets the failure; until then nobody listens.
  loaded.catch(() => undefined);
  return loaded;
}

/** Plugins are promised KUBERNETES_EXEC_INFO (client.authentication.k8s.io), which client-node does not set. */
function withExecInfo(user: User, cluster: Cluster): User {
  const exec = user.exec as
    | {
        apiVersion?: string;
        env?: { name: string; value: string }[] | null;
        provideClusterInfo?: boolean;
      }
    | null
    | undefined;
  if (!exec) return user;
  const info = {
    apiVersion: exec.apiVersion ?? "client.authentication.k8s.io/v1",
    kind: "ExecCredential",
    spec: {
      interactive: false,
      ...(exec.provideClusterInfo === true
        ? {
            cluster: {
              server: cluster.server,
              "certificate-authority-data": caText(cluster)?.toString("base64"),
              "tls-server-name": cluster.tlsServerName,
              "insecure-skip-tls-verify": cluster.skipTLSVerify,
              "proxy-url": cluster.proxyUrl,
            },
          }
        : {}),
    },
  };
  const env = [...(exec.env ?? []), { name: "KUBERNETES_EXEC_INFO", value: JSON.stringify(info) }];
  return { ...user, exec: { ...exec, env } };
}

function createTlsReader(
  cluster: Cluster,
  user: User,
): (issued: { readonly cert?: string; readonly key?: string }) => TlsMaterial {
  let current: TlsMaterial = {};
  let readAtMs = -Infinity;
  let files: { ca?: Buffer | undefined; cert?: Buffer | undefined; key?: Buffer | undefined } = {};
  return (issued) => {
    const nowMs = performance.now();
    if (nowMs - readAtMs >= REREAD_MS) {
      files = {
        ca: caText(cluster),
        cert: fileOrData(user.certFile, user.certData),
        key: fileOrData(user.keyFile, user.keyData),
      };
      readAtMs = nowMs;
    }
    const cert = issued.cert ?? files.cert;
    const key = issued.key ?? files.key;
    const next: TlsMaterial = {
      ...(files.ca === undefined ? {} : { ca: files.ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
      ...(cluster.tlsServerName ? { servername: cluster.tlsServerName } : {}),
      ...(cluster.skipTLSVerify ? { rejectUnauthorized: false } : {}),
    };
    if (!sameTls(current, next)) current = next;
    return current;
  };
}

function sameTls(left: TlsMaterial, right: TlsMaterial): boolean {
  return (
    (["ca", "cert", "key"] as const).every((field) => {
      const [a, b] = [left[field], right[field]];
      return (
        a === b || (a !== undefined && b !== undefined && Buffer.from(a).equals(Buffer.from(b)))
      );
    }) &&
    left.servername === right.servername &&
    left.rejectUnauthorized === right.rejectUnauthorized
  );
}

function caText({ caFile, caData }: Cluster): Buffer | undefined {
  return fileOrData(caFile, caData);
}

function fileOrData(file: string | undefined, data: string | undefined): Buffer | undefined {
  if (data) return Buffer.from(data, "base64");
  return file ? readFileSync(file) : undefined;
}

function basic(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
}

function credentialsFailed(user: User, error: unknown): KonvergeError {
  const { message } = ensureError(error);
  const command = (user.exec as { readonly command?: string } | null | undefined)?.command;
  const by = command === undefined ? "" : ` by the plugin "${command}"`;
  // The cause is left out: what a plugin wrote may hold the credential itself, beyond its first line.
  return new KonvergeError(
    "kube_unreachable",
    `no credentials for user "${user.name}"${by}: ${message.trim().split("\n", 1)[0] ?? ""}`,
  );
}
