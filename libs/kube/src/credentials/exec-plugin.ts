import { spawn } from "node:child_process";
import { ensureError } from "@konverge/core";
import type { Authenticator } from "@kubernetes/client-node/dist/auth.js";
import type { Cluster, User } from "@kubernetes/client-node/dist/config_types.js";
import { ExecAuth } from "@kubernetes/client-node/dist/exec_auth.js";
import { readCa } from "./tls-material.ts";

/** A plugin that hangs would hold up every call for ever. Long enough for one that asks a slow identity provider. */
const PLUGIN_MS = 60_000;
const API_VERSION = "client.authentication.k8s.io/v1";

/**
 * client-node's plugins, without a standard input that they could wait for, and ended after a minute. They are run anew when
 * the credential has expired.
 */
export function createExecAuthenticator(limitMs: number = PLUGIN_MS): Authenticator {
  const plugin = new ExecAuth();
  const start = (command: string, args: readonly string[] | undefined, options: object) =>
    spawn(command, args ?? [], {
      ...options,
      stdio: ["ignore", "pipe", "pipe"],
      timeout: limitMs,
      killSignal: "SIGKILL",
    });
  // Private in its types; tests of client-node itself put another function there.
  Object.assign(plugin, { execFn: start });
  return plugin;
}

/** Plugins are promised KUBERNETES_EXEC_INFO (client.authentication.k8s.io), which client-node does not set. */
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

/** Never what the plugin printed as its answer, which is the credential, and which a parser quotes. */
export function describePluginFailure(error: unknown): string {
  const { name, message } = ensureError(error);
  if (name === "SyntaxError") return "what it printed is not JSON";
  if (name === "TypeError") return "what it printed is not an ExecCredential with a status";
  return message.trim() === "" ? "it ended without a word, or took longer than 60 s" : message;
}
