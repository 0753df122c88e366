import { defined, isJsonObject, type JsonObject, type JsonValue } from "@konverge/core";

/** A cluster of a kubeconfig. The fields are those of client-node's `Cluster`. */
export interface KubeconfigCluster {
  readonly name: string;
  readonly server: string;
  readonly caData?: string | undefined;
  readonly caFile?: string | undefined;
  readonly skipTLSVerify?: boolean | undefined;
  readonly tlsServerName?: string | undefined;
  readonly proxyUrl?: string | undefined;
  /** The extension `client.authentication.k8s.io/exec`, for plugins with `provideClusterInfo`. */
  readonly execConfig?: JsonValue | undefined;
}

/** A user of a kubeconfig. The fields are those of client-node's `User`, and `tokenFile`. */
export interface KubeconfigUser {
  readonly name: string;
  readonly certData?: string | undefined;
  readonly certFile?: string | undefined;
  readonly keyData?: string | undefined;
  readonly keyFile?: string | undefined;
  readonly token?: string | undefined;
  /** Takes the place of `token`, as in client-go. */
  readonly tokenFile?: string | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly impersonateUser?: string | undefined;
  readonly exec?: ExecConfig | undefined;
  readonly authProvider?: AuthProvider | undefined;
}

/** A credential plugin (client.authentication.k8s.io). */
export interface ExecConfig {
  readonly command?: string;
  readonly args?: readonly string[] | null;
  readonly env?: readonly { readonly name: string; readonly value: string }[] | null;
  readonly apiVersion?: string;
  readonly provideClusterInfo?: boolean;
}

interface AuthProvider {
  readonly name?: string;
  readonly config?: Readonly<Record<string, unknown>> | null;
}

export interface KubeconfigEntry {
  readonly name: string;
  readonly cluster: string;
  readonly user: string | undefined;
  readonly namespace: string | undefined;
}

/**
 * Impersonation fields other than `as`, which are not supported. Dropping them would impersonate a different identity.
 */
const UNREAD = ["as-groups", "as-uid", "as-user-extra"];

/** A user, and the set fields that cannot be honored. */
export interface ReadUser {
  readonly user: KubeconfigUser;
  readonly unread: readonly string[];
}

/** @throws Error with the path of the missing field */
export function readClusters(list: JsonValue | undefined): KubeconfigCluster[] {
  return entriesOf(list, "clusters", "cluster").map(({ name, body, path }) => {
    const server = text(body["server"]);
    if (server === undefined) throw new Error(`${path}.cluster.server is missing`);
    return {
      name,
      server: server.replace(/\/$/, ""),
      caData: text(body["certificate-authority-data"]),
      caFile: text(body["certificate-authority"]),
      skipTLSVerify: body["insecure-skip-tls-verify"] === true,
      tlsServerName: text(body["tls-server-name"]),
      proxyUrl: text(body["proxy-url"]),
      ...defined({ execConfig: extensionOf(body["extensions"], EXEC_EXTENSION) }),
    };
  });
}

/** client-go's name for the configuration that exec plugins receive. */
const EXEC_EXTENSION = "client.authentication.k8s.io/exec";

function extensionOf(list: JsonValue | undefined, name: string): JsonValue | undefined {
  if (!Array.isArray(list)) return undefined;
  const found = list.filter(isJsonObject).find((entry) => entry["name"] === name);
  return found?.["extension"];
}

/** @throws Error with the path of the missing field */
export function readContexts(list: JsonValue | undefined): KubeconfigEntry[] {
  return entriesOf(list, "contexts", "context").map(({ name, body, path }) => {
    const cluster = text(body["cluster"]);
    if (cluster === undefined) throw new Error(`${path}.context.cluster is missing`);
    return { name, cluster, user: text(body["user"]), namespace: text(body["namespace"]) };
  });
}

/** @throws Error with the path of the missing field */
export function readUsers(list: JsonValue | undefined): ReadUser[] {
  return entriesOf(list, "users").map(({ name, body }) => ({
    user: {
      name,
      certData: text(body["client-certificate-data"]),
      certFile: text(body["client-certificate"]),
      keyData: text(body["client-key-data"]),
      keyFile: text(body["client-key"]),
      token: text(body["tokenFile"]) === undefined ? text(body["token"]) : undefined,
      tokenFile: text(body["tokenFile"]) ?? text(body["token-file"]),
      username: text(body["username"]),
      password: text(body["password"]),
      impersonateUser: text(body["as"]),
      // Their fields are checked when they are used: another context must not fail because of them.
      exec: mapping(body["exec"]),
      authProvider: mapping(body["auth-provider"]),
    },
    unread: UNREAD.filter((field) => isSet(body[field])),
  }));
}

interface NamedEntry {
  readonly name: string;
  readonly body: JsonObject;
  readonly path: string;
}

/** @param field the required content of an entry; a user may have none */
function entriesOf(list: JsonValue | undefined, key: string, field?: string): NamedEntry[] {
  if (!Array.isArray(list)) return [];
  return list.map((entry, index) => {
    const path = `${key}[${index}]`;
    const name = isJsonObject(entry) ? text(entry["name"]) : undefined;
    if (name === undefined || !isJsonObject(entry)) throw new Error(`${path}.name is missing`);
    const body = entry[field ?? "user"];
    if (field !== undefined && !isJsonObject(body)) throw new Error(`${path}.${field} is missing`);
    return { name, body: isJsonObject(body) ? body : {}, path };
  });
}

/** A text without quotes that looks like a number or a boolean is one for YAML. */
function text(value: JsonValue | undefined): string | undefined {
  const isScalar = typeof value === "number" || typeof value === "boolean";
  const found = isScalar ? String(value) : value;
  return typeof found === "string" && found !== "" ? found : undefined;
}

function mapping(value: JsonValue | undefined): JsonObject | undefined {
  return isJsonObject(value) ? value : undefined;
}

function isSet(value: JsonValue | undefined): boolean {
  if (typeof value === "object" && value !== null) return Object.keys(value).length > 0;
  return (value ?? "") !== "";
}
