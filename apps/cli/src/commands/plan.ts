import { KonvergeError } from "@konverge/core";
import type { Command } from "commander";
import { groupHelp, runWithClient, withClient, type ClientFlags } from "../ask/run-with-client.ts";
import { planSelected, withFleet, type FleetFlags } from "../fleet/fleet-flags.ts";
import { fleetDocument, fleetText } from "../fleet/fleet-text.ts";
import { print } from "../text/output.ts";

interface PlanFlags extends ClientFlags, FleetFlags {
  readonly all?: boolean;
}

const HELP = `
  konverge plan --all
  konverge plan --all --controller node-pool -n demo
  konverge plan --all --resume plans.jsonl
  konverge plan --all --config new.config.ts

Workers plan the next attempt of each object, with calls after those of all other work. Nothing is stored in the
cluster. With --config, this process also plans with the code of the file, and prints the differences; it needs the
Redis and the kubeconfig of a worker. Exit code 1: a plan is incomplete.`;

export function addPlanCommand(program: Command): void {
  withFleet(
    withClient(
      program
        .command("plan")
        .description("Show the changes that the next attempts of all objects would make"),
    ),
  )
    .option("--all", "Plan all selected objects (required)")
    .option("--config <file>", "Configuration file with new code, to compare with the running code")
    .addHelpText("afterAll", groupHelp(HELP))
    .action((flags: PlanFlags) =>
      runWithClient(flags, async (asking) => {
        if (flags.all !== true) {
          const detail = "--all: is required; use konverge object plan for one object";
          throw new KonvergeError("invalid_request", detail);
        }
        const fleet = await planSelected(asking, flags);
        print(flags.output, {
          document: fleetDocument(fleet),
          items: fleet.groups,
          names: fleet.groups.flatMap(({ examples }) => examples),
          table: () => fleetText(fleet),
        });
        if (fleet.incomplete.length > 0) process.exitCode = 1;
      }),
    );
}
