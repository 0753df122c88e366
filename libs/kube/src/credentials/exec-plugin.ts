import { spawn } from "node:child_process";
import { ensureError } from "@konverge/core";
import type { Authenticator } from "@kubernetes/client-node/dist/auth.js";
import type { Cluster, User } from "@kubernetes/client-node/dist/config_types.js";
import { ExecAuth } from "@kubernetes/client-node/dist/exec_auth.js";
import { readCa } from "./tls-material.ts";

/** Time limit of a plugin, so that a hanging one does not block all calls. Long enough for a slow identity provider. */
const PLUGIN_MS = 60_000;
const API_VERSION = "client.authentication.k8s.io/v1";

export interface ExecAuthenticatorOptions {
  readonly limitMs?: number;
  /** Called when the plugin's process starts. */
  readonly onStart?: () => void;
}

/**
 * Returns client-node's authenticator for plugins, with a closed standard input and a time limit. A plugin runs again
 * when its credential has expired.
 */
export function createExecAuthenticator({
  limitMs = PLUGIN_MS,
  onStart = () => undefined,
}: ExecAuthenticatorOptions = {}): Authenticator {
  const plugin = new ExecAuth();
  const start = (command: string, args: readonly string[] | undefined, options: object) => {
    onStart();
    return spawn(command, args ?? [], {
      ...options,
      stdio: ["ignore", "pipe", "pipe"],
      timeout: limitMs,
      killSignal: "SIGKILL",
    });
  };
  // The property is private in its types; client-node's own tests replace it in the same way.
  Object.assign(plugin, { execFn: start });
  return plugin;
}

/** Adds KUBERNETES_EXEC_INFO (client.authentication.k8s.io), which plugins require and client-node does not set. */
export function withExecInfo(user: User, cluster: Cluster): User {
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
    apiVersion: exec.apiVersion ?? API_VERSION,
    kind: "ExecCredential",
    spec: {
      interactive: false,
      ...(exec.provideClusterInfo === true
        ? {
            cluster: {
              server: cluster.server,
              "certificate-authority-data": readCa(cluster)?.toString("base64"),
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

/** Omits the plugin's output, which is the credential and which a parser error quotes. */
export function describePluginFailure(error: unknown): string {
  const { name, message } = ensureError(error);
  if (name === "SyntaxError") return "the output is not JSON";
  if (name === "TypeError") return "the output is not an ExecCredential with a status";
  return message.trim() === "" ? "it failed without a message, or took longer than 60 s" : message;
}
