import { spawn } from "node:child_process";
import { defined, ensureError, isJsonObject, parseJson } from "@konverge/core";
import type { ExecConfig, KubeconfigCluster } from "./kubeconfig-entries.ts";
import { readCa } from "./tls-material.ts";

/** Time limit of a plugin, so that a hanging one does not block all calls. Long enough for a slow identity provider. */
const PLUGIN_MS = 60_000;
const API_VERSION = "client.authentication.k8s.io/v1";

/** The credential that a plugin has issued. */
export interface IssuedCredential {
  readonly token?: string;
  readonly cert?: string;
  readonly key?: string;
}

export interface ExecPluginOptions {
  readonly exec: ExecConfig;
  readonly cluster: KubeconfigCluster;
  readonly limitMs?: number;
  /** Called when the plugin's process starts. */
  readonly onStart?: () => void;
}

/** A credential plugin (client.authentication.k8s.io). */
export interface ExecPlugin {
  /** Runs the plugin, unless its latest credential is still valid. @throws Error by which `describePluginFailure` explains it */
  issue(): Promise<IssuedCredential>;
  /** Makes the next `issue` run the plugin. */
  forget(): void;
}

export function createExecPlugin({
  exec,
  cluster,
  limitMs = PLUGIN_MS,
  onStart = () => undefined,
}: ExecPluginOptions): ExecPlugin {
  let latest: { readonly credential: IssuedCredential; readonly untilMs: number } | undefined;
  return {
    async issue() {
      if (latest !== undefined && Date.now() < latest.untilMs) return latest.credential;
      onStart();
      latest = readCredential(await runPlugin(exec, execInfo(exec, cluster), limitMs));
      return latest.credential;
    },
    forget() {
      latest = undefined;
    },
  };
}

/** Runs the command with a closed standard input, and returns its standard output. */
async function runPlugin(exec: ExecConfig, info: object, limitMs: number): Promise<string> {
  const { command, args, env } = exec;
  if (typeof command !== "string" || command === "") throw new Error("exec.command is missing");
  const ended = Promise.withResolvers<number | null>();
  const child = spawn(command, args ?? [], {
    env: {
      ...process.env,
      ...Object.fromEntries((env ?? []).map(({ name, value }) => [name, value])),
      KUBERNETES_EXEC_INFO: JSON.stringify(info),
    },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: limitMs,
    killSignal: "SIGKILL",
  });
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text: string) => (output[name] += text));
  }
  child.once("error", (error) => ended.reject(error));
  child.once("close", (code) => ended.resolve(code));
  if ((await ended.promise) !== 0) throw new Error(output.stderr);
  return output.stdout;
}

/** @throws SyntaxError or TypeError for an output of another form, which it may quote */
function readCredential(output: string) {
  const value = parseJson(output);
  const status = isJsonObject(value) ? value["status"] : undefined;
  if (!isJsonObject(status)) throw new TypeError("no status");
  const textAt = (field: string) => {
    const found = status[field];
    return typeof found === "string" && found !== "" ? found : undefined;
  };
  const expiresAtMs = Date.parse(textAt("expirationTimestamp") ?? "");
  return {
    credential: defined({
      token: textAt("token"),
      cert: textAt("clientCertificateData"),
      key: textAt("clientKeyData"),
    }),
    untilMs: Number.isNaN(expiresAtMs) ? Infinity : expiresAtMs,
  };
}

/** The content of KUBERNETES_EXEC_INFO, which plugins require. */
function execInfo({ apiVersion, provideClusterInfo }: ExecConfig, cluster: KubeconfigCluster) {
  const clusterInfo = {
    server: cluster.server,
    "certificate-authority-data": readCa(cluster)?.toString("base64"),
    "tls-server-name": cluster.tlsServerName,
    "insecure-skip-tls-verify": cluster.skipTLSVerify,
    "proxy-url": cluster.proxyUrl,
    config: cluster.execConfig,
  };
  return {
    apiVersion: apiVersion ?? API_VERSION,
    kind: "ExecCredential",
    spec: {
      interactive: false,
      ...(provideClusterInfo === true ? { cluster: clusterInfo } : {}),
    },
  };
}

/** Omits the plugin's output, which is the credential and which a parser error quotes. */
export function describePluginFailure(error: unknown): string {
  const { name, message } = ensureError(error);
  if (name === "SyntaxError") return "the output is not JSON";
  if (name === "TypeError") return "the output is not an ExecCredential with a status";
  return message.trim() === "" ? "it failed without a message, or took longer than 60 s" : message;
}
