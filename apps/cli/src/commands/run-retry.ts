import type { Command } from "commander";
import { pick } from "../ask/show-pages.ts";
import { printNote } from "../text/output.ts";
import { KonvergeError } from "@konverge/core";
import {
  actOnRuns,
  BULK_OPTIONS,
  checkOneRun,
  withRuns,
  type BulkFlags,
} from "../ask/act-on-runs.ts";
import { actionOf, runWithClient } from "../ask/run-with-client.ts";
import { showRun, showWhenEnded, withWait, type WaitFlags } from "../ask/show-run.ts";

interface RetryFlags extends BulkFlags, WaitFlags {
  readonly fromFailedStep?: boolean;
  readonly skipUndo?: string;
}

export function addRunRetryCommand(group: Command): void {
  withWait(
    withRuns(
      group
        .command("retry")
        .description("Retry a failed or cancelled run, recheck a blocked one, or all that match"),
    ),
  )
    .option(
      "--from-failed-step",
      "Resume the same run after its completed steps; not if steps were undone",
    )
    .option("--skip-undo <step>", "Continue a blocked compensation without the undo of this step")
    .action((id: string | undefined, flags: RetryFlags) =>
      runWithClient(
        flags,
        async (asking) => {
          const { client } = asking;
          const { fromFailedStep: fromFailed = false, wait } = flags;
          if (id === undefined) {
            checkBulk(flags);
            const more = { fromFailed };
            return await actOnRuns(asking, { action: "retry", done: "retried", flags, more });
          }
          checkOneRun(flags);
          if (flags.dryRun === true) {
            showRun(flags, await client.runs.get(id));
            return printNote("dry run; showing the current state, nothing was retried");
          }
          const { action, write } = actionOf(flags);
          const run = await client.runs.retry(
            id,
            { ...action, fromFailed, ...pick(flags, ["skipUndo"]) },
            write,
          );
          if (wait === true) return await showWhenEnded(client, run.id, flags);
          showRun(flags, run);
        },
        BULK_OPTIONS,
      ),
    );
}

function checkBulk({ wait, skipUndo }: RetryFlags): void {
  if (wait !== true && skipUndo === undefined) return;
  const detail = "--wait and --skip-undo need a run; omit them to retry all runs that match";
  throw new KonvergeError("invalid_request", detail);
}
