import { EnvtestUnavailable, resolveAssets, startControlPlane } from "@konverge/infra-envtest";

/** The real API server of one test run, or the reason why it is missing. */
export type RealApiServer =
  | {
      readonly kind: "running";
      /** The version and the origin of the programs, for output. */
      readonly description: string;
      /** The environment of the tests: `KONVERGE_TEST_KUBECONFIG` and `KUBEBUILDER_ASSETS`. */
      readonly env: Readonly<Record<string, string>>;
      stop(): Promise<void>;
    }
  | { readonly kind: "absent"; readonly reason: string };

/**
 * Starts the real control plane that all tests of a run share. Tests that disturb a server start their own from the same
 * programs.
 * @throws {EnvtestUnavailable} with `required`, if no control plane can be started
 */
export async function startRealApiServer({
  required,
  log,
}: {
  readonly required: boolean;
  readonly log: (line: string) => void;
}): Promise<RealApiServer> {
  try {
    const { directory, origin } = await resolveAssets({ log });
    const env = { ...process.env, KUBEBUILDER_ASSETS: directory };
    const plane = await startControlPlane({ log, env });
    return {
      kind: "running",
      description: `kube-apiserver ${plane.version} (${origin})`,
      env: { KONVERGE_TEST_KUBECONFIG: plane.kubeconfigPath, KUBEBUILDER_ASSETS: directory },
      stop: () => plane.stop(),
    };
  } catch (error) {
    if (required || !(error instanceof EnvtestUnavailable)) throw error;
    return { kind: "absent", reason: error.message };
  }
}
