import { createLogger } from "@konverge/telemetry";
import { startControlPlane } from "@konverge/testkit";
import { untilSignal } from "../until-signal.ts";
import { readVersion } from "../version.ts";

/** A process of its own, so that Ctrl-C does not end the server before the demo has cleaned up on it. */
export async function runControlPlane(auditLog: string): Promise<void> {
  const log = createLogger({ service: "control-plane", version: readVersion() });
  const plane = await startControlPlane({
    log: (line) => process.stderr.write(`${line}\n`),
    build: true,
    auditLog,
  });
  const { version, kubeconfigPath, pids } = plane;
  log.info({ version, kubeconfigPath, serverPid: pids.kubeApiserver }, "control plane ready");
  await untilSignal();
  await plane.stop();
}
