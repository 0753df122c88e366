import { createInterface } from "node:readline/promises";
import { defined, KonvergeError } from "@konverge/core";
import { loadKubeCredentials } from "@konverge/kube";

export interface ConfirmClusterOptions {
  readonly kubeconfig: string | undefined;
  readonly signal: AbortSignal;
}

/**
 * Asks the user whether to run controllers on the cluster of the kubeconfig.
 * @throws KonvergeError `invalid_request` if the user declines, or without a terminal
 */
export async function confirmCluster({ kubeconfig, signal }: ConfirmClusterOptions): Promise<void> {
  const { context, server } = loadKubeCredentials(defined({ kubeconfigPath: kubeconfig }));
  const what = `run the controllers on context "${context}" (${server}) and apply their CRDs there`;
  if (!process.stdin.isTTY) {
    throw new KonvergeError(
      "invalid_request",
      `--cluster kubeconfig would ${what}; add --yes to confirm`,
    );
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await terminal.question(`This will ${what}. Continue? [y/N] `, { signal });
    if (/^y(es)?$/i.test(answer.trim())) return;
  } finally {
    terminal.close();
  }
  throw new KonvergeError("invalid_request", "the cluster was not confirmed; nothing was started");
}
