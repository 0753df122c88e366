import type { Overview } from "@konverge/contracts";
import type { Command } from "commander";
import { runWithClient, withClient, type ClientFlags } from "../ask/run-with-client.ts";
import { print, printNote } from "../text/output.ts";
import { statusKey, statusText } from "../text/status-text.ts";

interface StatusFlags extends ClientFlags {
  readonly watch?: boolean;
}

const HELP = `
Prints a summary and the current problems, most severe first: start, cause,
effect on pending work, and next step. The overview of the dashboard shows the
same. Exits with 1 if a problem is an error, else with 0.

Examples:
  konverge status
  konverge status --watch
  konverge status -o json | jq '.problems[] | {code, since, cause}'`;

const EVERY_MS = 5_000;

export function addStatusCommand(program: Command): void {
  withClient(program.command("status").description("Show the current problems of a cluster"))
    .option("-w, --watch", "Print the problems again when they change, until interrupted")
    .addHelpText("after", HELP)
    .action((flags: StatusFlags) =>
      runWithClient(flags, async ({ client, cluster }) => {
        let shown: string | undefined;
        do {
          const overview = await client.overview({ cluster });
          const key = statusKey(overview);
          if (key !== shown) {
            if (shown !== undefined && flags.output === "table") printNote(overview.at);
            show(flags, overview);
          }
          shown = key;
          process.exitCode = overview.problems.some(({ level }) => level === "error") ? 1 : 0;
          if (flags.watch === true) await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
        } while (flags.watch === true);
      }),
    );
}

function show({ output }: StatusFlags, overview: Overview): void {
  print(output, {
    document: overview,
    ...(output === "jsonl" ? { items: overview.problems } : {}),
    names: overview.problems.map(({ code }) => code),
    table: () => statusText(overview),
  });
}
