import { KonvergeError } from "@konverge/core";
import type { KubeconfigContext } from "./kubeconfig.ts";

/** Limits a kubeconfig that others may write, such as the content of a Secret. */
export interface Confinement {
  /** Allows exec plugins and auth providers, which run commands with the environment of this process. Default: false. */
  readonly allowExec?: boolean;
}

/**
 * Rejects a kubeconfig that runs commands here, or that names files of this machine: its author could execute code, or send the
 * token of this process's service account to another server.
 * @throws KonvergeError `invalid_config` naming the field
 */
export function assertConfined(
  { cluster, user }: Pick<KubeconfigContext, "cluster" | "user">,
  { allowExec = false }: Confinement,
): void {
  const files: readonly (readonly [field: string, file: unknown, fix: string])[] = [
    ["cluster.certificate-authority", cluster.caFile, "certificate-authority-data"],
    ["user.client-certificate", user.certFile, "client-certificate-data"],
    ["user.client-key", user.keyFile, "client-key-data"],
    ["user.tokenFile", user.tokenFile, "token"],
    ["user.auth-provider.config.tokenFile", user.authProvider?.config?.["tokenFile"], "token"],
  ];
  for (const [field, file, fix] of files) {
    if (file === undefined) continue;
    throw rejected(`${field} names a file of the worker; use ${fix}`);
  }
  if (allowExec) return;
  const command = user.exec === undefined ? "auth-provider" : "exec";
  if (user.exec === undefined && user.authProvider === undefined) return;
  throw rejected(
    `user.${command} runs a command in the worker; use a token or client-certificate-data, or set allowExec if you trust all users who can write this kubeconfig`,
  );
}

function rejected(detail: string): KonvergeError {
  return new KonvergeError("invalid_config", `kubeconfig: ${detail}`);
}
