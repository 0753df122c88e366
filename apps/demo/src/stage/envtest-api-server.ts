import {
  makeServerFolder,
  parseLogLine,
  startProcess,
  type StackParts,
  type StartApiServer,
} from "@konverge/local-stack";
import { DEMO_SCRIPT } from "./scripts.ts";

/** Includes a download or build of the control plane. */
const CONTROL_PLANE_MS = 900_000;

/** Starts a real kube-apiserver with etcd. */
export function envtestApiServer(log: (line: string) => void): StartApiServer {
  return async (parts: StackParts) => {
    const { folder, auditLog } = await makeServerFolder(parts);
    const plane = startProcess({
      script: DEMO_SCRIPT,
      args: ["control-plane", `--audit-log=${auditLog}`],
      logs: parts.logs,
      workFolder: folder,
    });
    parts.cleanup.defer(() => plane.stop());
    // Progress of a download or a build; log lines are JSON.
    plane.onLine((line) => {
      if (parseLogLine(line) === undefined) log(line);
    });
    const ready = await plane.logged("control plane ready", CONTROL_PLANE_MS);
    log(`kube-apiserver ${String(ready["version"])} and etcd started`);
    const kubeconfigPath = String(ready["kubeconfigPath"]);
    return { kubeconfigPath, auditLog, pid: Number(ready["serverPid"]) };
  };
}
