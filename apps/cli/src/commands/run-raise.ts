import { defined } from "@konverge/core";
import type { Command } from "commander";
import { parseCount } from "../ask/parse-count.ts";
import {
  actionOf,
  runWithClient,
  withAction,
  withServer,
  type ActionFlags,
} from "../ask/run-with-client.ts";
import { RUN_ID, showRun } from "../ask/show-run.ts";
import { printNote } from "../text/output.ts";

interface RaiseFlags extends ActionFlags {
  readonly steps?: number;
  readonly bytes?: number;
}

/** Adds `run raise`, which continues a run that is blocked at a limit. */
export function addRunRaiseCommand(group: Command): void {
  withAction(
    withServer(
      group
        .command("raise")
        .description("Raise the limits of a run; a blocked run continues")
        .argument("<run>", RUN_ID)
        .option("--steps <n>", "Recorded steps, up to 100000", parseCount)
        .option("--bytes <n>", "Bytes of all records, up to 67108864", parseCount),
    ),
  ).action((id: string, flags: RaiseFlags) =>
    runWithClient(
      flags,
      async ({ client }) => {
        if (flags.dryRun === true) {
          showRun(flags, await client.runs.get(id));
          return printNote("dry run; showing the current state, nothing was raised");
        }
        const { action, write } = actionOf(flags);
        const { steps, bytes } = flags;
        showRun(
          flags,
          await client.runs.raise(id, { ...action, ...defined({ steps, bytes }) }, write),
        );
      },
      { options: { "": "--steps or --bytes", "/steps": "--steps", "/bytes": "--bytes" } },
    ),
  );
}
