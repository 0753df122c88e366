import type { Command } from "commander";
import { groupHelp, runWithClient, withClient, type ClientFlags } from "../ask/run-with-client.ts";
import type { DeployCheck } from "../config/check-live-runs.ts";
import { loadConfig } from "../config/load-config.ts";
import { print } from "../text/output.ts";

interface CheckFlags extends ClientFlags {
  readonly config: string;
}

const HELP = `
  konverge deploy check --config konverge.config.ts
  konverge deploy check --config konverge.config.ts -o json`;

export function addDeployCommand(program: Command): void {
  const group = program
    .command("deploy")
    .description("Check new code before it is deployed")
    .addHelpText("afterAll", groupHelp(HELP));
  withClient(
    group
      .command("check")
      .description("Check that the workflows of a configuration fit all live runs")
      .requiredOption("--config <file>", "Configuration file with the new code (required)"),
  )
    .addHelpText(
      "after",
      "\nExit code 1: a run would block, or continue with other steps than it has recorded.",
    )
    .action((flags: CheckFlags) =>
      runWithClient(flags, async ({ client, cluster }) => {
        const config = await loadConfig(flags.config);
        const { checkLiveRuns } = await import("../config/check-live-runs.ts");
        const check = await checkLiveRuns(client, cluster, config);
        const wouldBlock = runsOf(check, true);
        const wouldWarn = runsOf(check, false);
        print(flags.output, {
          document: { fit: check.fit, wouldBlock, wouldWarn, misfits: check.misfits },
          items: check.misfits,
          names: check.misfits.flatMap(({ examples }) => examples),
          table: () => checkText(check),
        });
        if (wouldBlock + wouldWarn > 0) process.exitCode = 1;
      }),
    );
}

function runsOf({ misfits }: DeployCheck, areBlocked: boolean): number {
  return misfits.reduce((sum, { runs, blocks }) => sum + (blocks === areBlocked ? runs : 0), 0);
}

function checkText(check: DeployCheck): string {
  const lines = check.misfits.map(({ workflow, reason, runs, blocks, examples }) => {
    const more = runs > examples.length && examples.length > 0 ? ", ..." : "";
    const where = examples.length === 0 ? "" : ` (${examples.join(", ")}${more})`;
    const effect = blocks ? "would block" : "would continue with a warning";
    return `  ${runs} of ${workflow} ${effect}: ${reason}${where}`;
  });
  const warned = runsOf(check, false);
  const sum = `${check.fit} fit, ${runsOf(check, true)} would block`;
  return [warned === 0 ? sum : `${sum}, ${warned} would continue with a warning`, ...lines].join(
    "\n",
  );
}
