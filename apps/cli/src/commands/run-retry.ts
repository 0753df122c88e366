import type { Command } from "commander";
import { say } from "../text/output.ts";
import {
  orderOf,
  runWithClient,
  withOrder,
  withServer,
  type OrderFlags,
} from "../ask/run-with-client.ts";
import { RUN_ID, showRun, showWhenEnded, withWait, type WaitFlags } from "../ask/show-run.ts";

interface RetryFlags extends OrderFlags, WaitFlags {
  readonly fromFailed?: boolean;
}

export function addRunRetryCommand(group: Command): void {
  withWait(
    withOrder(
      withServer(
        group
          .command("retry")
          .description("Retry a failed or cancelled run; recheck a blocked one")
          .argument("<run>", RUN_ID),
      ),
    ),
  )
    .option(
      "--from-failed",
      "Resume the same run after its completed steps; not if it was compensated",
    )
    .action((id: string, flags: RetryFlags) =>
      runWithClient(flags, async ({ client }) => {
        if (flags.dryRun === true) {
          showRun(flags, await client.runs.get(id));
          return say("dry run; showing the current state, nothing was retried");
        }
        const { order, write } = orderOf(flags);
        const { fromFailed = false, wait } = flags;
        const run = await client.runs.retry(id, { ...order, fromFailed }, write);
        if (wait === true) return await showWhenEnded(client, run.id, flags);
        showRun(flags, run);
      }),
    );
}
