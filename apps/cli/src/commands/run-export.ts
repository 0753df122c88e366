import { writeFile } from "node:fs/promises";
import { ensureError, KonvergeError } from "@konverge/core";
import { Option, type Command } from "commander";
import { runWithClient } from "../ask/run-with-client.ts";
import { RUN_ID } from "../ask/show-run.ts";
import { printNote } from "../text/output.ts";
import { plainJson } from "../text/plain-text.ts";

interface ExportFlags {
  readonly out?: string;
  readonly server?: string;
}

export function addRunExportCommand(group: Command): void {
  group
    .command("export")
    .description("Write the input and all records of a run as JSON, to replay it in a test")
    .argument("<run>", RUN_ID)
    .option("--out <file>", "File to write (default: standard output)")
    .addOption(
      new Option(
        "--server <url>",
        "URL of the HTTP API (default: KONVERGE_SERVER, or use Redis directly)",
      ),
    )
    .action((id: string, flags: ExportFlags) =>
      runWithClient(flags, async ({ client }) => {
        const text = `${plainJson(JSON.stringify(await client.runs.history(id), null, 2))}\n`;
        if (flags.out === undefined) {
          process.stdout.write(text);
          return;
        }
        await writeFile(flags.out, text, { mode: 0o600 }).catch((cause: unknown) => {
          const detail = `--out ${flags.out} cannot be written: ${ensureError(cause).message}`;
          throw new KonvergeError("invalid_request", detail, { cause });
        });
        printNote(`wrote ${flags.out}`);
      }),
    );
}
