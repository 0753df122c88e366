import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KonvergeError } from "@konverge/core";
import { startProcess } from "./start-process.ts";

/** The API server of a local stack. */
export interface ApiServer {
  readonly kubeconfigPath: string;
  /** Undefined for a server that the stack did not start. */
  readonly auditLog?: string;
  /** Undefined for a server that the stack did not start. */
  readonly pid?: number;
}

export interface StackParts {
  readonly name: string;
  readonly cli: string;
  readonly logs: string | undefined;
  /** Disposed after everything that uses the server. */
  readonly cleanup: AsyncDisposableStack;
}

export type StartApiServer = (parts: StackParts) => Promise<ApiServer>;

/** Starts the embedded API server; it answers after `latencyMs`, and deletes owned objects with `controllers`. */
export function embeddedApiServer({
  latencyMs = 0,
  controllers = false,
}: { readonly latencyMs?: number; readonly controllers?: boolean } = {}): StartApiServer {
  return async (parts) => {
    const { folder, auditLog } = await makeServerFolder(parts);
    const kubeconfigPath = join(folder, "kubeconfig");
    const server = startProcess({
      script: parts.cli,
      args: [
        "apiserver",
        "--port=0",
        `--audit-log=${auditLog}`,
        `--latency=${latencyMs}`,
        ...(controllers ? ["--controllers"] : []),
        `--kubeconfig-out=${kubeconfigPath}`,
      ],
      logs: parts.logs,
      workFolder: folder,
    });
    parts.cleanup.defer(() => server.stop());
    await server.logged("API server listening");
    return { kubeconfigPath, auditLog, pid: server.pid };
  };
}

/** Uses the API server of a kubeconfig. @throws KonvergeError `invalid_config` if the file cannot be read */
export function apiServerOf(kubeconfig: string | undefined): StartApiServer {
  return async () => {
    if (kubeconfig === undefined) {
      throw new KonvergeError(
        "invalid_config",
        "--cluster kubeconfig: no kubeconfig; set KUBECONFIG or pass --kubeconfig FILE",
      );
    }
    await readFile(kubeconfig).catch((error: unknown) => {
      throw new KonvergeError("invalid_config", `--kubeconfig ${kubeconfig} cannot be read`, {
        cause: error,
      });
    });
    return { kubeconfigPath: kubeconfig };
  };
}

/** Makes the temporary folder of an API server, removed with the stack. */
export async function makeServerFolder({
  name,
  cleanup,
}: Pick<StackParts, "name" | "cleanup">): Promise<{ folder: string; auditLog: string }> {
  const folder = await mkdtemp(join(tmpdir(), `konverge-${name}-`));
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  return { folder, auditLog: join(folder, "audit.log") };
}
