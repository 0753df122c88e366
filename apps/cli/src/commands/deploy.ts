import type { Client } from "@konverge/client";
import { KonvergeError } from "@konverge/core";
import { InvalidArgumentError, Option, type Command } from "commander";
import { groupHelp, runWithClient, withClient, type ClientFlags } from "../ask/run-with-client.ts";
import type { DeployCheck } from "../config/check-live-runs.ts";
import { loadConfig } from "../config/load-config.ts";
import { FLEET_RETRIES, planSelected, withFleet, type FleetFlags } from "../fleet/fleet-flags.ts";
import type { FleetPlan } from "../fleet/fleet-plan.ts";
import { fleetDocument, fleetText } from "../fleet/fleet-text.ts";
import { print } from "../text/output.ts";

interface CheckFlags extends ClientFlags, FleetFlags {
  readonly config?: string;
  readonly expect?: "unchanged";
  readonly maxChanges?: number;
  readonly maxDeletes?: number;
}

const HELP = `
  konverge deploy check --config konverge.config.ts
  konverge deploy check --config konverge.config.ts -o json
  konverge deploy check --max-deletes 0 --max-changes 100 --controller node-pool
  konverge deploy check --expect unchanged --resume plans.jsonl`;

const CHECK_HELP = `
With --config, checks that the workflows of the new code fit all live runs. With limits, the workers plan all selected
objects, and the sum of their changes is compared with the limits.
Exit code 1: a run would block, or continue with other steps than it has recorded; a plan exceeds a limit, or is
incomplete.`;

export function addDeployCommand(program: Command): void {
  const group = program
    .command("deploy")
    .description("Check new code before it is deployed")
    .addHelpText("afterAll", groupHelp(HELP));
  withFleet(
    withClient(
      group
        .command("check")
        .description("Check that live runs fit new code, or that planned changes are within limits")
        .option("--config <file>", "Configuration file with the new code, for live runs"),
    ),
  )
    .addOption(new Option("--expect <changes>", "Expected changes").choices(["unchanged"]))
    .option("--max-changes <n>", "Most changed objects, including deletions", parseLimit)
    .option("--max-deletes <n>", "Most deleted objects, including replaced ones", parseLimit)
    .addHelpText("after", CHECK_HELP)
    .action((flags: CheckFlags) =>
      runWithClient(
        flags,
        async ({ client, cluster }) => {
          const { config: file, expect, maxChanges, maxDeletes } = flags;
          const hasLimits = [expect, maxChanges, maxDeletes].some((limit) => limit !== undefined);
          if (file === undefined && !hasLimits) {
            const detail = "--config, --expect, --max-changes or --max-deletes is required";
            throw new KonvergeError("invalid_request", detail);
          }
          if (file !== undefined) await checkRuns(client, cluster, { ...flags, config: file });
          if (hasLimits) await checkPlans(client, cluster, flags);
        },
        { retries: FLEET_RETRIES },
      ),
    );
}

async function checkRuns(
  client: Client,
  cluster: string,
  { config: file, output }: CheckFlags & { readonly config: string },
): Promise<void> {
  const config = await loadConfig(file);
  const { checkLiveRuns } = await import("../config/check-live-runs.ts");
  const check = await checkLiveRuns(client, cluster, config);
  const wouldBlock = runsOf(check, true);
  const wouldWarn = runsOf(check, false);
  print(output, {
    document: { fit: check.fit, wouldBlock, wouldWarn, misfits: check.misfits },
    items: check.misfits,
    names: check.misfits.flatMap(({ examples }) => examples),
    table: () => checkText(check),
  });
  if (wouldBlock + wouldWarn > 0) process.exitCode = 1;
}

async function checkPlans(client: Client, cluster: string, flags: CheckFlags): Promise<void> {
  const fleet = await planSelected(client, cluster, flags);
  const exceeded = exceededBy(fleet, flags);
  print(flags.output, {
    document: { ...fleetDocument(fleet), exceeded },
    items: fleet.groups,
    names: fleet.groups.flatMap(({ examples }) => examples),
    table: () => [fleetText(fleet), ...exceeded].join("\n"),
  });
  if (exceeded.length > 0) process.exitCode = 1;
}

/** Returns the limits that the plans exceed. A plan that is incomplete may hide further changes. */
function exceededBy(
  { changes, deletes, runs, incomplete }: FleetPlan,
  { expect, maxChanges = Infinity, maxDeletes = Infinity }: CheckFlags,
): string[] {
  const most = expect === "unchanged" ? 0 : maxChanges;
  return [
    ...(changes > most ? [`exceeded: ${changes} changes, at most ${most} expected`] : []),
    ...(expect === "unchanged" && runs > 0
      ? [`exceeded: ${runs} workflow runs would start, none expected`]
      : []),
    ...(deletes > maxDeletes
      ? [`exceeded: ${deletes} deletions, at most ${maxDeletes} expected`]
      : []),
    ...(incomplete.length > 0 ? [`exceeded: ${incomplete.length} plans are incomplete`] : []),
  ];
}

function parseLimit(text: string): number {
  const number = Number(text);
  if (text !== "" && Number.isSafeInteger(number) && number >= 0) return number;
  throw new InvalidArgumentError("Use a whole number from 0.");
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
