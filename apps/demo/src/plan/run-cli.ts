import { execFile } from "node:child_process";
import type { LocalStack } from "@konverge/local-stack";
import { isolatedEnv } from "../stage/isolated-env.ts";
import { CLI_SCRIPT } from "../stage/scripts.ts";

interface CliResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command of the command line to its end, as a user with this token. */
export function runCli(
  { redis, installation, apiServer, apiUrl }: LocalStack,
  args: readonly string[],
  { token, signal }: { readonly token?: string; readonly signal: AbortSignal },
): Promise<CliResult> {
  const env = {
    ...process.env,
    ...isolatedEnv(),
    KONVERGE_REDIS_URL: redis.url,
    KONVERGE_PREFIX: installation,
    KONVERGE_KUBECONFIG: apiServer.kubeconfigPath,
    ...(token === undefined ? {} : { KONVERGE_SERVER: apiUrl, KONVERGE_TOKEN: token }),
  };
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      [...process.execArgv, CLI_SCRIPT, ...args],
      { env, signal, maxBuffer: 64 * 1_048_576 },
      (error, stdout, stderr) => {
        const code = error === null ? 0 : error.code;
        if (typeof code === "number") resolve({ code, stdout, stderr });
        else reject(error ?? new Error("no exit code"));
      },
    );
  });
}
