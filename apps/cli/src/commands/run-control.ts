import type { Client } from "@konverge/client";
import type { RunDetail } from "@konverge/contracts";
import type { Command } from "commander";
import { printNote } from "../text/output.ts";
import {
  actionOf,
  runWithClient,
  withAction,
  withServer,
  type ActionFlags,
} from "../ask/run-with-client.ts";
import { RUN_ID, showRun } from "../ask/show-run.ts";

interface Control {
  readonly name: Extract<keyof Client["runs"], "cancel" | "pause" | "resume" | "terminate">;
  readonly description: string;
  /** Past participle, for the note of a dry run. */
  readonly done: string;
}

const CONTROLS: readonly Control[] = [
  { name: "cancel", description: "Cancel a run and undo its steps", done: "cancelled" },
  {
    name: "pause",
    description: "Pause a run: running bodies end, and nothing begins until it is resumed",
    done: "paused",
  },
  { name: "resume", description: "Resume a paused run", done: "resumed" },
  {
    name: "terminate",
    description: "End a run at once, without undo; list the recorded steps not undone",
    done: "terminated",
  },
];

/** Adds the commands that change one run and print it. */
export function addRunControlCommands(group: Command): void {
  for (const control of CONTROLS) addControl(group, control);
}

function addControl(group: Command, { name, description, done }: Control): void {
  withAction(
    withServer(group.command(name).description(description).argument("<run>", RUN_ID)),
  ).action((id: string, flags: ActionFlags) =>
    runWithClient(flags, async ({ client }) => {
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
    }),
  );
}
