import type { Command } from "commander";
import type { Asking } from "../ask/run-with-client.ts";
import { pick } from "../ask/show-pages.ts";
import { timeoutOption } from "../ask/timeout-option.ts";
import { printNote } from "../text/output.ts";
import type { FleetPlan } from "./fleet-plan.ts";
import { openNewCode } from "./open-new-code.ts";
import { planFleet } from "./plan-fleet.ts";
import { openProgressFile } from "./progress-file.ts";

export interface FleetFlags {
  readonly controller?: string;
  readonly namespace?: string;
  readonly config?: string;
  readonly resume?: string;
  readonly timeout: number;
}

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

/**
 * Plans the selected objects, and reports the progress on stderr. With a configuration, its code is compared with the running
 * code.
 */
export async function planSelected(
  { client, settings, cluster }: Asking,
  flags: FleetFlags,
): Promise<FleetPlan> {
  let notedAtMs = performance.now();
  const query = { cluster, ...pick(flags, ["controller", "namespace", "config"]) };
  const progress = flags.resume === undefined ? undefined : openProgressFile(flags.resume, query);
  if (progress?.since !== undefined) printNote(`using the plans made since ${progress.since}`);
  const newCode =
    flags.config === undefined ? undefined : await openNewCode(flags.config, { settings, cluster });
  try {
    return await planFleet(client, query, {
      progress,
      timeoutMs: flags.timeout,
      newCode,
      onPlanned({ planned, changes }) {
        if (performance.now() < notedAtMs + NOTE_MS) return;
        notedAtMs = performance.now();
        printNote(`${planned} objects planned, ${changes} changes`);
      },
    });
  } finally {
    await newCode?.close();
  }
}
