import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestedServer } from "../servers.ts";
import { inNewNamespace } from "./in-new-namespace.ts";
import { inNamespace } from "./kubectl-client.ts";
import { runProgram } from "./run-program.ts";
import { sameText } from "./same-text.ts";

/** Longer than the deadline of each program, which then reports what it waited for. */
const LIMIT_MS = 150_000;

/**
 * Runs a program with a kubeconfig for a new namespace, and returns what it prints and its exit code. Its log is only
 * part of the result if it fails.
 */
export async function programOutput(
  server: TestedServer,
  [program = "", ...args]: readonly string[],
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "konverge-program-"));
  try {
    return await inNewNamespace(server, async (namespace) => {
      const kubeconfig = join(folder, "kubeconfig");
      writeFileSync(kubeconfig, inNamespace(server.kubeconfig, namespace));
      const env = { ...process.env, KUBECONFIG: kubeconfig };
      const ended = await runProgram(program, args, { cwd: folder, env, limitMs: LIMIT_MS });
      const text = `${ended.out}exit code ${ended.code}\n${ended.code === 0 ? "" : ended.err}`;
      return sameText(text, { namespace });
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
