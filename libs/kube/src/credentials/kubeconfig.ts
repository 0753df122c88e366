import { existsSync, readFileSync } from "node:fs";
import { delimiter, dirname, isAbsolute, join } from "node:path";
import { ensureError, isJsonObject, KonvergeError, type JsonValue } from "@konverge/core";
import { load } from "js-yaml";
import {
  readClusters,
  readContexts,
  readUsers,
  type KubeconfigCluster,
  type KubeconfigEntry,
  type KubeconfigUser,
  type ReadUser,
} from "./kubeconfig-entries.ts";

/** One context of a kubeconfig and the entries that it references, with absolute file paths. */
export interface KubeconfigContext {
  readonly context: Pick<KubeconfigEntry, "name" | "namespace">;
  readonly cluster: KubeconfigCluster;
  readonly user: KubeconfigUser;
}

export interface KubeconfigOptions {
  /**
   * Path of one file, or several joined as in `KUBECONFIG`. Default: `KUBECONFIG`, else `~/.kube/config`, else
   * in-cluster.
   */
  readonly kubeconfigPath?: string;
  /** The YAML text. */
  readonly kubeconfigText?: string;
  /** Resolves relative paths in `kubeconfigText`. Default: the working directory. */
  readonly kubeconfigTextDirectory?: string;
  /** Name of a context. Default: `current-context`. */
  readonly context?: string;
  /** Default `process.env`. Reads KUBECONFIG, HOME, KUBERNETES_SERVICE_HOST and _PORT, and the proxy variables. */
  readonly env?: NodeJS.ProcessEnv;
  /** Directory of the service account's token, CA and namespace in a Pod. Default: where the kubelet mounts them. */
  readonly serviceAccount?: string;
}

const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

interface Kubeconfig {
  readonly clusters: readonly KubeconfigCluster[];
  readonly contexts: readonly KubeconfigEntry[];
  readonly users: readonly ReadUser[];
  readonly current: string | undefined;
}

/**
 * Finds the context to use by kubectl's rules: the files of a list are merged, and the first entry of a name wins.
 * @throws KonvergeError `invalid_config` with the file or name
 */
export function loadKubeconfig(options: KubeconfigOptions = {}): KubeconfigContext {
  const { kubeconfigPath, kubeconfigText, env = process.env } = options;
  if (kubeconfigText !== undefined) {
    const { kubeconfigTextDirectory: directory = "." } = options;
    return pick(parse(kubeconfigText, "kubeconfigText", directory), options.context);
  }
  const list = kubeconfigPath ?? env["KUBECONFIG"];
  if (list !== undefined && list !== "") {
    const files = list.split(delimiter).filter((file) => file !== "");
    // kubectl skips missing files of a list, but an explicitly named file must exist.
    const present = files.length === 1 ? files : files.filter((file) => existsSync(file));
    if (present.length === 0) throw invalid(`none of the kubeconfig files ${list} exists`);
    return pick(merge(present.map(readConfig)), options.context);
  }
  const home = env["HOME"] ?? env["USERPROFILE"];
  const usual = home === undefined ? undefined : join(home, ".kube", "config");
  if (usual !== undefined && existsSync(usual)) return pick(readConfig(usual), options.context);
  const inCluster = fromServiceAccount(env, options.serviceAccount ?? SERVICE_ACCOUNT);
  if (inCluster !== undefined) return inCluster;
  throw invalid(
    "no kubeconfig found: no KUBECONFIG, no ~/.kube/config and not in a Pod; set KUBECONFIG",
  );
}

function readConfig(file: string): Kubeconfig {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw invalid(`cannot read kubeconfig ${file}: ${ensureError(error).message}`, error);
  }
  return parse(text, file, dirname(file));
}

function parse(text: string, source: string, directory: string): Kubeconfig {
  try {
    const document = load(text) as JsonValue | undefined;
    if (document === undefined || !isJsonObject(document))
      throw new Error("it is not a YAML mapping");
    const current = document["current-context"];
    return {
      clusters: readClusters(document["clusters"]).map((cluster) =>
        withPaths(cluster, ["caFile"], directory),
      ),
      contexts: readContexts(document["contexts"]),
      users: readUsers(document["users"]).map(({ user, unread }) => ({
        user: withPluginPath(
          withPaths(user, ["certFile", "keyFile", "tokenFile"], directory),
          directory,
        ),
        unread,
      })),
      current: typeof current === "string" && current !== "" ? current : undefined,
    };
  } catch (error) {
    throw invalid(`${source} is not a kubeconfig: ${reasonOf(ensureError(error))}`);
  }
}

/** A YAML error quotes lines, aliases and tags: a key, a token, or a password that begins with "*" or "!". */
function reasonOf({ message }: Error): string {
  const [reason = ""] = message.split("\n", 1);
  return reason.replaceAll(/".*"|<.*>|(?<=characters: ).*(?= \()/g, "(omitted)");
}

/** As kubectl: a command with a slash is relative to the kubeconfig, any other is found by PATH. */
function withPluginPath(user: KubeconfigUser, directory: string): KubeconfigUser {
  const { exec } = user;
  if (typeof exec?.command !== "string" || !/[/\\]/.test(exec.command)) return user;
  return { ...user, exec: { ...exec, command: absolute(exec.command, directory) } };
}

function withPaths<T extends object>(entry: T, fields: readonly (keyof T)[], directory: string): T {
  const result = { ...entry };
  for (const field of fields) {
    const path = entry[field];
    if (typeof path === "string") Object.assign(result, { [field]: absolute(path, directory) });
  }
  return result;
}

function absolute(path: string, directory: string): string {
  return isAbsolute(path) ? path : join(directory, path);
}

function merge(configs: readonly Kubeconfig[]): Kubeconfig {
  return {
    clusters: configs.flatMap(({ clusters }) => clusters),
    contexts: configs.flatMap(({ contexts }) => contexts),
    users: configs.flatMap(({ users }) => users),
    current: configs.find(({ current }) => current !== undefined)?.current,
  };
}

function pick(
  { clusters, contexts, users, current }: Kubeconfig,
  wanted: string | undefined,
): KubeconfigContext {
  const name = wanted ?? current;
  if (name === undefined) throw invalid("the kubeconfig has no current-context; set a context");
  const context = named(contexts, name, "context");
  const cluster = named(clusters, context.cluster, "cluster");
  // Contexts without a user exist for clusters without credentials, such as a local one over http.
  if (!context.user) return { context, cluster, user: { name: "" } };
  const { unread, user } = named(
    users.map((entry) => ({ ...entry, name: entry.user.name })),
    context.user,
    "user",
  );
  if (unread.length === 0) return { context, cluster, user };
  throw invalid(
    `${unread.join(", ")} of user "${user.name}" in the kubeconfig is not supported: only "as" (a user name) is; remove the rest, or use another context`,
  );
}

function named<T extends { readonly name: string }>(
  entries: readonly T[],
  name: string,
  kind: string,
): T {
  const found = entries.find((entry) => entry.name === name);
  if (found !== undefined) return found;
  const known = entries.map((entry) => entry.name).join(", ");
  throw invalid(
    `the kubeconfig has no ${kind} "${name}"; available: ${known === "" ? "none" : known}`,
  );
}

function fromServiceAccount(env: NodeJS.ProcessEnv, folder: string): KubeconfigContext | undefined {
  const host = env["KUBERNETES_SERVICE_HOST"];
  const port = env["KUBERNETES_SERVICE_PORT"];
  const tokenFile = `${folder}/token`;
  if (!host || !port || !existsSync(tokenFile)) return undefined;
  const namespaceFile = `${folder}/namespace`;
  const namespace = existsSync(namespaceFile)
    ? readFileSync(namespaceFile, "utf8").trim()
    : undefined;
  return {
    context: { name: "in-cluster", namespace },
    cluster: {
      name: "in-cluster",
      server: `https://${host.includes(":") ? `[${host}]` : host}:${port}`,
      caFile: `${folder}/ca.crt`,
      skipTLSVerify: false,
    },
    user: { name: "in-cluster", tokenFile },
  };
}

function invalid(message: string, cause?: unknown): KonvergeError {
  return new KonvergeError("invalid_config", message, cause === undefined ? {} : { cause });
}
