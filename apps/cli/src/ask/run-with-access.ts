import type { QueueAccess } from "@konverge/api";
import { readSettings, type Settings } from "@konverge/contracts";
import { isKonvergeError } from "@konverge/core";
import { explainFailure } from "../process/explain-failure.ts";
import { printNote } from "../text/output.ts";
import { redisOfCommand } from "../process/redis-of-command.ts";

/** Prints that a change has no entry in the audit log. */
export function printLost(entries: number): void {
  printNote(`the change was made, but ${entries} entries of the audit log could not be written`);
}

/** Runs a command that reads Redis itself and never uses HTTP. Prints errors, and ends the process with their exit code. */
export async function runWithAccess(
  work: (access: QueueAccess, settings: Settings) => Promise<void>,
): Promise<void> {
  let redisUrl: string | undefined;
  await runWithErrors(
    async () => {
      const settings = readSettings({ env: process.env });
      ({ redisUrl } = settings);
      // A connection error is reported by the call that needs the connection.
      const onError = () => undefined;
      const { openQueueAccess } = await import("@konverge/api");
      const access = openQueueAccess({
        redis: redisOfCommand(redisUrl),
        prefix: settings.prefix,
        auditKeys: settings.auditKeys,
        onAuditLost: printLost,
        onError,
      });
      try {
        await work(access, settings);
      } finally {
        await access.close();
      }
    },
    () => redisUrl,
  );
}

/** Prints the errors of a command, and ends the process with their exit code. */
export async function runWithErrors(
  work: () => Promise<void>,
  redisUrl: () => string | undefined = () => undefined,
): Promise<void> {
  try {
    await work();
  } catch (thrown) {
    if (!isKonvergeError(thrown)) throw thrown;
    const { line, exitCode } = explainFailure(thrown, { redisUrl: redisUrl(), options: {} });
    process.stderr.write(`konverge: ${line}\n`);
    // Not exitCode: without Redis, the closed client keeps the process alive for two more seconds.
    process.exit(exitCode);
  }
}
