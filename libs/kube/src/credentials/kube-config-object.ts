import { KonvergeError } from "@konverge/core";
import type { User } from "@kubernetes/client-node";
import type { KubeConfigObject } from "./client-node-auth.ts";
import type { KubeconfigContext } from "./kubeconfig.ts";
import type { KubeconfigUser } from "./kubeconfig-entries.ts";

/** Returns true for a `KubeConfig` of any copy of client-node. */
export function isKubeConfig(value: unknown): value is KubeConfigObject {
  if (typeof value !== "object" || value === null) return false;
  const config = value as Partial<Record<keyof KubeConfigObject, unknown>>;
  return (
    typeof config.getContextObject === "function" &&
    typeof config.applyToHTTPSOptions === "function"
  );
}

/**
 * Returns the current context of a client-node `KubeConfig`.
 * @param wanted must be the current one, because the authenticators use that
 * @throws KonvergeError `invalid_config`
 */
export function contextOfKubeConfig(
  config: KubeConfigObject,
  wanted: string | undefined,
): KubeconfigContext {
  const current = config.getCurrentContext() as string | undefined;
  if (wanted !== undefined && wanted !== current) {
    throw invalid(
      `context "${wanted}" is not the current context of the KubeConfig (${current ?? "none"}); call setCurrentContext`,
    );
  }
  const context = config.getContextObject(current ?? "");
  if (current === undefined || context === null) {
    throw invalid(
      "the KubeConfig has no current context; call one of its load functions, or setCurrentContext",
    );
  }
  const cluster = config.getCluster(context.cluster);
  if (cluster === null) throw invalid(`the KubeConfig has no cluster "${context.cluster}"`);
  const { namespace } = context;
  return {
    context: { name: current, namespace },
    cluster,
    user: toUser(config.getUser(context.user)),
  };
}

/** The certificates are read here; the rest is left to the authenticators of the KubeConfig. */
function toUser(user: User | null): KubeconfigUser {
  if (user === null) return { name: "" };
  const { name, certData, certFile, keyData, keyFile, username, password } = user;
  const text = (value: string | null | undefined) => value || undefined;
  return {
    name,
    certData: text(certData),
    certFile: text(certFile),
    keyData: text(keyData),
    keyFile: text(keyFile),
    username: text(username),
    password: text(password),
    exec: user.exec ?? undefined,
    authProvider: user.authProvider ?? undefined,
  };
}

function invalid(message: string): KonvergeError {
  return new KonvergeError("invalid_config", message);
}
