import type { Command } from "commander";
import { pick } from "../ask/show-pages.ts";
import { printNote } from "../text/output.ts";
import {
  actionOf,
  runWithClient,
  withAction,
  withServer,
  type ActionFlags,
} from "../ask/run-with-client.ts";
import { RUN_ID, showRun, showWhenEnded, withWait, type WaitFlags } from "../ask/show-run.ts";

interface RetryFlags extends ActionFlags, WaitFlags {
  readonly fromFailedStep?: boolean;
  readonly skipUndo?: string;
}

export function addRunRetryCommand(group: Command): void {
  withWait(
    withAction(
      withServer(
        group
          .command("retry")
          .description("Retry a failed or cancelled run; recheck a blocked one")
          .argument("<run>", RUN_ID),
      ),
    ),
  )
    .option(
      "--from-failed-step",
      "Resume the same run after its completed steps; not if steps were undone",
    )
    .option("--skip-undo <step>", "Continue a blocked compensation without the undo of this step")
    .action((id: string, flags: RetryFlags) =>
      runWithClient(flags, async ({ client }) => {
        if (flags.dryRun === true) {
          showRun(flags, await client.runs.get(id));
          return printNote("dry run; showing the current state, nothing was retried");
        }
        const { action, write } = actionOf(flags);
        const { fromFailedStep: fromFailed = false, wait } = flags;
        const run = await client.runs.retry(
          id,
          { ...action, fromFailed, ...pick(flags, ["skipUndo"]) },
          write,
        );
        if (wait === true) return await showWhenEnded(client, run.id, flags);
        showRun(flags, run);
      }),
    );
}
