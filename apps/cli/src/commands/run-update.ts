import { defined } from "@konverge/core";
import type { Command } from "commander";
import { print } from "../text/output.ts";
import { runWithClient, withServer, type ClientFlags } from "../ask/run-with-client.ts";
import { readJson } from "../ask/read-json.ts";
import { RUN_ID, RUN_OPTIONS } from "../ask/show-run.ts";
import { systemUser } from "../ask/system-user.ts";
import { timeoutOption } from "../ask/timeout-option.ts";

interface UpdateFlags extends ClientFlags {
  readonly payload?: string;
  readonly id?: string;
  readonly by?: string;
  readonly timeout: number;
}

/** Adds `run update`, which prints the answer of the run. */
export function addRunUpdateCommand(group: Command): void {
  withServer(
    group
      .command("update")
      .description("Send an update to a run and print its answer")
      .argument("<run>", RUN_ID)
      .argument("<update>", "Update name"),
  )
    .option("--payload <json>", "Payload as JSON; @file reads a file, @- standard input")
    .option(
      "--id <id>",
      "Update ID; sending the same ID again returns its answer (default: random)",
    )
    .option("--by <name>", "Author (default: system user)")
    .addOption(timeoutOption())
    .action((run: string, name: string, flags: UpdateFlags) =>
      runWithClient(
        flags,
        async ({ client }) => {
          const { payload, id, by = systemUser(), timeout, output } = flags;
          const given =
            payload === undefined ? {} : { payload: await readJson("--payload", payload) };
          const update = { name, by, ...given, ...defined({ id }) };
          const answered = await client.runs.update(run, update, { timeoutMs: timeout });
          print(output, {
            document: answered,
            names: [answered.id],
            table: () => JSON.stringify(answered.answer) ?? "accepted",
          });
        },
        RUN_OPTIONS,
      ),
    );
}
