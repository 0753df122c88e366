import type { Overview } from "@konverge/contracts";
import type { Command } from "commander";
import { withClient } from "../ask/run-with-client.ts";
import { runWatched, withWatch, type WatchFlags } from "../ask/show-watched.ts";
import type { Output, Shown } from "../text/output.ts";
import { statusKey, statusText } from "../text/status-text.ts";

const HELP = `
Prints a summary and the current problems, most severe first: start, cause,
effect on pending work, and next step. The overview of the dashboard shows the
same. Exits with 1 if a problem is an error, else with 0.

Examples:
  konverge status
  konverge status --watch
  konverge status -o json | jq '.problems[] | {code, since, cause}'`;

export function addStatusCommand(program: Command): void {
  withWatch(
    withClient(program.command("status").description("Show the current problems of a cluster")),
  )
    .addHelpText("after", HELP)
    .action((flags: WatchFlags) =>
      runWatched(flags, async ({ client, cluster }) => {
        const overview = await client.overview({ cluster });
        process.exitCode = overview.problems.some(({ level }) => level === "error") ? 1 : 0;
        return { ...shownOf(flags.output, overview), key: statusKey(overview) };
      }),
    );
}

function shownOf(output: Output, overview: Overview): Shown {
  return {
    document: overview,
    ...(output === "jsonl" ? { items: overview.problems } : {}),
    names: overview.problems.map(({ code }) => code),
    table: () => statusText(overview),
  };
}
