import { writeFile } from "node:fs/promises";
import { ensureError, KonvergeError } from "@konverge/core";
import type { Command } from "commander";
import { runWithClient, withServer, type ClientFlags } from "../ask/run-with-client.ts";

interface BundleFlags extends ClientFlags {
  readonly file: string;
}

const HELP = `
Writes a JSON file with versions, numeric settings, checks of Redis, and for each
cluster its controllers, workflows, workers, guard and problems. Names of objects,
namespaces and users, error messages, reasons, inputs and addresses are replaced
by digests. Within one file, equal texts have equal digests. Read the file before
you send it.

Examples:
  konverge support-bundle --file bundle.json`;

export function addSupportBundleCommand(program: Command): void {
  withServer(
    program
      .command("support-bundle")
      .description("Write a file for support, without object names and messages"),
  )
    .requiredOption("--file <path>", "File to write (required)")
    .addHelpText("after", HELP)
    .action((flags: BundleFlags) =>
      runWithClient(flags, async ({ client, settings }) => {
        const { collectBundle } = await import("../support/collect-bundle.ts");
        const text = JSON.stringify(await collectBundle(client, settings), null, 2);
        try {
          await writeFile(flags.file, `${text}\n`, { flag: "wx", mode: 0o600 });
        } catch (cause) {
          const detail = `--file: ${flags.file} cannot be written: ${ensureError(cause).message}`;
          throw new KonvergeError("invalid_request", detail, { cause });
        }
        process.stderr.write(`wrote ${flags.file}\n`);
      }),
    );
}
