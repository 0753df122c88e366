import type { Client } from "@konverge/client";
import type { RunDetail } from "@konverge/contracts";
import type { Command } from "commander";
import { printNote } from "../text/output.ts";
import {
  actOnRuns,
  BULK_OPTIONS,
  checkOneRun,
  withRuns,
  type BulkFlags,
} from "../ask/act-on-runs.ts";
import { actionOf, runWithClient } from "../ask/run-with-client.ts";
import { showRun } from "../ask/show-run.ts";

interface Control {
  readonly name: Extract<keyof Client["runs"], "cancel" | "pause" | "resume" | "terminate">;
  readonly description: string;
  /** Past participle, for notes. */
  readonly done: string;
}

const CONTROLS: readonly Control[] = [
  {
    name: "cancel",
    description: "Cancel a run and undo its steps, or all runs that match",
    done: "cancelled",
  },
  {
    name: "pause",
    description: "Pause a run after its running bodies, or all runs that match",
    done: "paused",
  },
  { name: "resume", description: "Resume a paused run, or all that match", done: "resumed" },
  {
    name: "terminate",
    description: "End a run at once, without undo, or all runs that match",
    done: "terminated",
  },
];

/** Adds the commands that change one run and print it, or all runs that match. */
export function addRunControlCommands(group: Command): void {
  for (const control of CONTROLS) addControl(group, control);
}

function addControl(group: Command, { name, description, done }: Control): void {
  withRuns(group.command(name).description(description)).action(
    (id: string | undefined, flags: BulkFlags) =>
      runWithClient(
        flags,
        async (asking) => {
          if (id === undefined) return await actOnRuns(asking, { action: name, done, flags });
          const { client } = asking;
          checkOneRun(flags);
          if (flags.dryRun === true) {
            showRun(flags, await client.runs.get(id));
            return printNote(`dry run; showing the current state, nothing was ${done}`);
          }
          const { action, write } = actionOf(flags);
          const run: RunDetail & { readonly note?: string } = await client.runs[name](
            id,
            action,
            write,
          );
          showRun(flags, run);
          if (run.note !== undefined) printNote(run.note);
        },
        BULK_OPTIONS,
      ),
  );
}
