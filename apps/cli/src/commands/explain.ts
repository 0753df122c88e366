import type { Command } from "commander";
import { objectOf, withObject, type ObjectFlags } from "../ask/object-target.ts";
import { groupHelp, runWithClient } from "../ask/run-with-client.ts";
import { explanationText } from "../text/explanation-text.ts";
import { print } from "../text/output.ts";

const HELP = `
  konverge explain object node-pool blue -n demo
  konverge explain object node-pool blue -n demo -o json`;

export function addExplainCommand(program: Command): void {
  const explain = program
    .command("explain")
    .description("Explain the state of an object")
    .addHelpText("afterAll", groupHelp(HELP));
  withObject(
    explain
      .command("object")
      .description("Explain why an object is not reconciled or not ready, the root cause first"),
  ).action((controller: string, name: string | undefined, flags: ObjectFlags) =>
    runWithClient(flags, async ({ client, cluster }) => {
      const { namespace } = flags;
      const explanation = await client.objects.explain(
        objectOf({ controller, name, namespace, cluster }),
      );
      print(flags.output, {
        document: explanation,
        items: explanation.causes,
        names: explanation.causes.map(({ code }) => code),
        table: () => explanationText(explanation),
      });
    }),
  );
}
