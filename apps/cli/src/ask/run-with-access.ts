import type { QueueAccess } from "@konverge/api";
import { readSettings, type Settings } from "@konverge/contracts";
import { isKonvergeError } from "@konverge/core";
import { explainFailure } from "../process/explain-failure.ts";
import { redisOfCommand } from "../process/redis-of-command.ts";

/** Runs a command that reads Redis itself and never uses HTTP. Prints errors, and ends the process with their exit code. */
export async function runWithAccess(
  work: (access: QueueAccess, settings: Settings) => Promise<void>,
): Promise<void> {
  let redisUrl: string | undefined;
  try {
    const settings = readSettings({ env: process.env });
    ({ redisUrl } = settings);
    // A connection error is reported by the call that needs the connection.
    const onError = () => undefined;
    const { openQueueAccess } = await import("@konverge/api");
    const access = openQueueAccess({
      redis: redisOfCommand(redisUrl),
      prefix: settings.prefix,
      onError,
    });
    try {
      await work(access, settings);
    } finally {
      await access.close();
    }
  } catch (thrown) {
    if (!isKonvergeError(thrown)) throw thrown;
    const { line, exitCode } = explainFailure(thrown, { redisUrl, options: {} });
    process.stderr.write(`konverge: ${line}\n`);
    // Not exitCode: without Redis, the closed client keeps the process alive for two more seconds.
    process.exit(exitCode);
  }
}
