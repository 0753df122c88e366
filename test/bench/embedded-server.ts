import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startPeerProcess } from "./peer-process.ts";

/** Starts the embedded API server in a process of its own. `auditLog`: the file of its audit log; none by default. */
export async function startEmbeddedServer({
  auditLog,
}: { readonly auditLog?: string } = {}): Promise<
  { readonly kubeconfigPath: string } & AsyncDisposable
> {
  const folder = mkdtempSync(join(tmpdir(), "konverge-bench-"));
  const kubeconfigPath = join(folder, "kubeconfig");
  const server = startPeerProcess(process.execPath, [
    "--max-old-space-size=8192",
    "--conditions=@konverge/source",
    fileURLToPath(new URL("embedded-server-process.ts", import.meta.url)),
    kubeconfigPath,
    ...(auditLog === undefined ? [] : [auditLog]),
  ]);
  await server.ready;
  return {
    kubeconfigPath,
    async [Symbol.asyncDispose]() {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
