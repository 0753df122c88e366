import type { Command } from "commander";
import { groupHelp, runWithClient, withServer, type ClientFlags } from "../ask/run-with-client.ts";
import { clusterRows } from "../text/cluster-text.ts";
import { print } from "../text/output.ts";

const HELP = `
  konverge cluster list
  konverge cluster list -o json`;

export function addClusterCommand(program: Command): void {
  const group = program
    .command("cluster")
    .description("List the clusters that workers serve")
    .addHelpText("after", groupHelp(HELP));
  withServer(
    group.command("list").description("List clusters with state, workers and last error"),
  ).action((flags: ClientFlags) =>
    runWithClient(flags, async ({ client }) => {
      const list = await client.clusters.list();
      print(flags.output, {
        document: list,
        items: list.items,
        names: list.items.map(({ name }) => name),
        table: () => clusterRows(list.items),
        empty: "no clusters; start a worker with konverge worker --config <file>",
      });
    }),
  );
}
