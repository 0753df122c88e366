import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { KonvergeError } from "@konverge/core";
import { createApiServer, startControlPlane, type Fault } from "@konverge/apiserver";
import { readCalls, type CallLog } from "./api-calls.ts";

/**
 * The API server of a test: the embedded one, a real kube-apiserver with etcd (`envtest`), or the one of a kubeconfig, by its
 * path or its text.
 */
export type TestServer =
  | "embedded"
  | "envtest"
  | { readonly kubeconfig: string | { readonly text: string } };

/** A started API server, or access to one that runs already. */
export interface OpenedServer {
  /** YAML. */
  readonly kubeconfig: string;
  readonly calls: CallLog;
  inject(fault: Fault): () => void;
  close(): Promise<void>;
}

/** User agents of the worker begin with this. */
const WORKER = "konverge-worker/";

/**
 * Opens the API server of a test; `folder` is for its audit log.
 * @throws EnvtestUnavailable without programs for a real one
 */
export async function openServer(server: TestServer, folder: string): Promise<OpenedServer> {
  const auditLog = join(folder, "audit.jsonl");
  if (server === "embedded") {
    const embedded = await createApiServer({ auditLog, controllers: true });
    return {
      kubeconfig: embedded.kubeconfig,
      calls: readCalls(auditLog, WORKER),
      inject: (fault) => embedded.inject({ userAgent: WORKER, ...fault }),
      close: () => embedded.close(),
    };
  }
  if (server === "envtest") {
    const plane = await startControlPlane({ log: () => undefined, auditLog });
    return {
      kubeconfig: plane.kubeconfig,
      calls: readCalls(auditLog, WORKER),
      inject: refuseFault,
      close: () => plane.stop(),
    };
  }
  const { kubeconfig } = server;
  return {
    kubeconfig:
      typeof kubeconfig === "string" ? await readFile(kubeconfig, "utf8") : kubeconfig.text,
    calls: { calls: refuseCalls, clear: () => undefined },
    inject: refuseFault,
    close: () => Promise.resolve(),
  };
}

function refuseFault(): never {
  throw new KonvergeError(
    "invalid_config",
    "inject: only the embedded API server has faults; leave out `server` in this test",
  );
}

function refuseCalls(): never {
  throw new KonvergeError(
    "invalid_config",
    'calls: the API server of a kubeconfig has no log of calls; leave out `server`, or set it to "envtest"',
  );
}
