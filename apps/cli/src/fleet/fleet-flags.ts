import type { Client } from "@konverge/client";
import type { Command } from "commander";
import { pick } from "../ask/show-pages.ts";
import { timeoutOption } from "../ask/timeout-option.ts";
import { printNote } from "../text/output.ts";
import type { FleetPlan } from "./fleet-plan.ts";
import { planFleet } from "./plan-fleet.ts";
import { openProgressFile } from "./progress-file.ts";

export interface FleetFlags {
  readonly controller?: string;
  readonly namespace?: string;
  readonly resume?: string;
  readonly timeout: number;
}

/** Retries of each call, so that a command for many objects continues after a failover of Redis. */
export const FLEET_RETRIES = 4;

/** Time between two notes about the progress, in ms. */
const NOTE_MS = 5_000;

/** Adds the options of commands that plan many objects. */
export function withFleet(command: Command): Command {
  return command
    .option("--controller <name>", "Controller name (default: all)")
    .option("-n, --namespace <name>", "Namespace; _ for cluster-scoped objects (default: all)")
    .option("--resume <file>", "File that stores the plans, so that a repeated call resumes")
    .addOption(timeoutOption());
}

/** Plans the selected objects, and reports the progress on stderr. */
export async function planSelected(
  client: Client,
  cluster: string,
  flags: FleetFlags,
): Promise<FleetPlan> {
  let notedAtMs = performance.now();
  const query = { cluster, ...pick(flags, ["controller", "namespace"]) };
  const progress = flags.resume === undefined ? undefined : openProgressFile(flags.resume, query);
  if (progress?.since !== undefined) printNote(`using the plans made since ${progress.since}`);
  return await planFleet(client, query, {
    progress,
    timeoutMs: flags.timeout,
    onPlanned({ planned, changes }) {
      if (performance.now() < notedAtMs + NOTE_MS) return;
      notedAtMs = performance.now();
      printNote(`${planned} objects planned, ${changes} changes`);
    },
  });
}
