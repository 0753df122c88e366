import type { Command } from "commander";
import { objectOf, withObject, type ObjectFlags } from "../ask/object-target.ts";
import { groupHelp, runWithClient, withClient, type ClientFlags } from "../ask/run-with-client.ts";
import { pick } from "../ask/show-pages.ts";
import { driftRows, driftText } from "../text/drift-text.ts";
import { print } from "../text/output.ts";

interface ListFlags extends ClientFlags {
  readonly controller?: string;
  readonly namespace?: string;
}

const HELP = `
  konverge drift list -n demo
  konverge drift show node-pool blue -n demo

A controller with the mode "observe" only plans. The report shows what it would change, which field managers own
these fields, and since when.`;

export function addDriftCommand(program: Command): void {
  const drift = program
    .command("drift")
    .description("Show the changes that observing controllers would make")
    .addHelpText("afterAll", groupHelp(HELP));
  withClient(drift.command("list").description("List groups of equal changes"))
    .option("--controller <name>", "Controller name")
    .option("-n, --namespace <name>", "Namespace; _ for cluster-scoped objects")
    .action((flags: ListFlags) =>
      runWithClient(flags, async ({ client, cluster }) => {
        const query = { cluster, ...pick(flags, ["controller", "namespace"]) };
        const answer = await client.drift.list(query);
        print(flags.output, {
          document: answer,
          items: answer.items,
          names: answer.items.map(({ key }) => key),
          table: () => driftRows(answer),
          empty:
            answer.controllers.length === 0
              ? 'no controller has the mode "observe"'
              : "no object has drift",
        });
      }),
    );
  withObject(
    drift.command("show").description("Show the changes of an object, with its plan"),
  ).action((controller: string, name: string | undefined, flags: ObjectFlags) =>
    runWithClient(flags, async ({ client, cluster }) => {
      const { namespace } = flags;
      const found = await client.drift.get(objectOf({ controller, name, namespace, cluster }));
      print(flags.output, {
        document: found,
        names: [found.key],
        table: () => driftText(found),
      });
    }),
  );
}
