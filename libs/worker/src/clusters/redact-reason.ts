import { createAttemptSecrets } from "@konverge/kube";
import type { ProvidedCluster } from "./cluster-provider.ts";

const MAX_CHARS = 500;
const CREDENTIAL =
  /["']?(?:[-\w]*token|password|client-key-data|client-secret)["']?\s*:\s*["']?([^\s"',}]+)/gi;

/**
 * Returns the message of an error for Redis and pages: one line, without the credentials of the kubeconfig, because an API server may
 * repeat them.
 */
export function redactReason(error: Error, cluster: ProvidedCluster | Error | undefined): string {
  const secrets = createAttemptSecrets();
  const text = cluster instanceof Error ? undefined : cluster?.kubeconfig?.text;
  for (const [, value = ""] of text?.matchAll(CREDENTIAL) ?? []) secrets.note({ value });
  const line = secrets
    .scrub(error.message)
    .replaceAll(/\s+/g, " ")
    // The user and password of a URL.
    .replaceAll(/:\/\/[^\s/@]+@/g, "://");
  return line.length > MAX_CHARS ? `${line.slice(0, MAX_CHARS)}...` : line;
}
