import { KonvergeError } from "@konverge/core";
import { InvalidArgumentError, Option, type Command } from "commander";
import {
  groupHelp,
  runWithClient,
  withClient,
  type Asking,
  type ClientFlags,
} from "../ask/run-with-client.ts";
import type { DeployCheck } from "../config/check-live-runs.ts";
import { loadConfig } from "../config/load-config.ts";
import { planSelected, withFleet, type FleetFlags } from "../fleet/fleet-flags.ts";
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
  konverge deploy check --expect unchanged --resume plans.jsonl
  konverge deploy check --config new.config.ts --max-deletes 0`;

const CHECK_HELP = `
With --config, checks that the workflows of the new code fit all live runs. With limits, the workers plan all selected
objects, and the sum of their changes is compared with the limits. With both, the limits apply to the differences
between new and running code, as konverge plan --all --config prints them.
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
        .option("--config <file>", "Configuration file with the new code"),
    ),
  )
    .addOption(new Option("--expect <changes>", "Expected changes").choices(["unchanged"]))
    .option("--max-changes <n>", "Most changed objects, including deletions", parseLimit)
    .option("--max-deletes <n>", "Most deleted objects, including replaced ones", parseLimit)
    .addHelpText("after", CHECK_HELP)
    .action((flags: CheckFlags) =>
      runWithClient(flags, async (asking) => {
        const { config: file, expect, maxChanges, maxDeletes } = flags;
        const hasLimits = [expect, maxChanges, maxDeletes].some((limit) => limit !== undefined);
        if (file === undefined && !hasLimits) {
          const detail = "--config, --expect, --max-changes or --max-deletes is required";
          throw new KonvergeError("invalid_request", detail);
        }
        const checks: Checked[] = [];
        if (file !== undefined) checks.push(await checkRuns(asking, file));
        if (hasLimits) checks.push(await checkPlans(asking, flags));
        print(flags.output, {
          document: Object.assign({}, ...checks.map(({ document }) => document)) as object,
          items: checks.flatMap(({ items }) => items),
          names: checks.flatMap(({ names }) => names),
          table: () => checks.map(({ text }) => text).join("\n"),
        });
        if (checks.some(({ isFailed }) => isFailed)) process.exitCode = 1;
      }),
    );
}

interface Checked {
  readonly isFailed: boolean;
  readonly document: object;
  readonly items: readonly unknown[];
  readonly names: readonly string[];
  readonly text: string;
}

async function checkRuns({ client, cluster }: Asking, file: string): Promise<Checked> {
  const config = await loadConfig(file);
  const { checkLiveRuns } = await import("../config/check-live-runs.ts");
  const check = await checkLiveRuns(client, cluster, config);
  const wouldBlock = runsOf(check, true);
  const wouldWarn = runsOf(check, false);
  return {
    isFailed: wouldBlock + wouldWarn > 0,
    document: { fit: check.fit, wouldBlock, wouldWarn, misfits: check.misfits },
    items: check.misfits,
    names: check.misfits.flatMap(({ examples }) => examples),
    text: checkText(check),
  };
}

async function checkPlans(asking: Asking, flags: CheckFlags): Promise<Checked> {
  const fleet = await planSelected(asking, flags);
  const exceeded = exceededBy(fleet, flags);
  return {
    isFailed: exceeded.length > 0,
    document: { ...fleetDocument(fleet), exceeded },
    items: fleet.groups,
    names: fleet.groups.flatMap(({ examples }) => examples),
    text: [fleetText(fleet), ...exceeded].join("\n"),
  };
}

/** Returns the limits that the plans exceed. A plan that is incomplete may hide further changes. */
function exceededBy(
  { changes, deletes, runs, notes, removed, incomplete }: FleetPlan,
  { expect, maxChanges = Infinity, maxDeletes = Infinity }: CheckFlags,
): string[] {
  const most = expect === "unchanged" ? 0 : maxChanges;
  return [
    ...(changes > most ? [`exceeded: ${changes} changes, at most ${most} expected`] : []),
    ...(expect === "unchanged" && runs > 0
      ? [`exceeded: ${runs} workflow runs would start, none expected`]
      : []),
    ...(expect === "unchanged" && notes.length > 0
      ? [`exceeded: ${sumOf(notes)} other differences, none expected`]
      : []),
    ...(expect === "unchanged" && removed.length > 0
      ? [`exceeded: ${removed.length} controllers are not in the new code, none expected`]
      : []),
    ...(deletes > maxDeletes
      ? [`exceeded: ${deletes} deletions, at most ${maxDeletes} expected`]
      : []),
    ...(incomplete.length > 0 ? [`exceeded: ${incomplete.length} plans are incomplete`] : []),
  ];
}

function sumOf(groups: FleetPlan["notes"]): number {
  return groups.reduce((sum, { count }) => sum + count, 0);
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
