import { createLogger } from "@konverge/telemetry";
import { startControlPlane } from "@konverge/apiserver";
import { DEMO_VERSION } from "./stage/scripts.ts";
import { aborted, stopSignal } from "./stage/stop-signal.ts";

/** Runs a real control plane in its own process, so that Ctrl-C does not stop it before the demo has cleaned up. */
export async function runControlPlane(auditLog: string): Promise<void> {
  const log = createLogger({ service: "control-plane", version: DEMO_VERSION });
  const plane = await startControlPlane({
    log: (line) => process.stderr.write(`${line}\n`),
    auditLog,
    build: true,
  });
  const { version, kubeconfigPath, pids } = plane;
  log.info({ version, kubeconfigPath, serverPid: pids.kubeApiserver }, "control plane ready");
  await aborted(stopSignal());
  await plane.stop();
}
