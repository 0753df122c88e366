import type { Command } from "commander";
import { groupHelp, withServer } from "../ask/run-with-client.ts";
import { clusterRows } from "../text/cluster-text.ts";
import { runWatched, withWatch, type WatchFlags } from "../ask/show-watched.ts";

const HELP = `
  konverge cluster list
  konverge cluster list -o json`;

export function addClusterCommand(program: Command): void {
  const group = program
    .command("cluster")
    .description("List the clusters that workers serve")
    .addHelpText("afterAll", groupHelp(HELP));
  withWatch(
    withServer(
      group.command("list").description("List clusters with state, workers and last error"),
    ),
  ).action((flags: WatchFlags) =>
    runWatched(flags, async ({ client }) => {
      const list = await client.clusters.list();
      return {
        document: list,
        items: list.items,
        names: list.items.map(({ name }) => name),
        table: () => clusterRows(list.items),
        empty: "no clusters; start a worker with konverge worker --config <file>",
      };
    }),
  );
}
