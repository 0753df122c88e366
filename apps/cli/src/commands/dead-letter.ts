import { deadLetterQuerySchema, releaseOrderSchema } from "@konverge/contracts";
import { KonvergeError } from "@konverge/core";
import type { Command } from "commander";
import { deadRows } from "../queue-text.ts";
import {
  checkTyped,
  print,
  runAtDesk,
  withFilter,
  withOrder,
  type OrderFlags,
  type ShowFlags,
} from "../run-at-desk.ts";
import { systemUser } from "../system-user.ts";

interface ReleaseFlags extends OrderFlags {
  readonly namespace?: string;
  readonly name?: string;
  readonly contains?: string;
  readonly all?: boolean;
  readonly dryRun?: boolean;
}

const HELP = `
  konverge dead-letter list -n demo
  konverge dead-letter release node-pool -n demo --name blue --reason "quota raised"
  konverge dead-letter release node-pool -n demo --contains web --dry-run --reason "how many?"
  konverge dead-letter release node-pool --all --reason "fixed in 4712"

A release requests the keys as a person does: they run at once, and their counters begin anew.
Exit codes: 0 done, 2 something to correct in what was typed or set, 3 not known or not dead, 6 Redis is away.`;

export function addDeadLetterCommand(program: Command): void {
  const deadLetter = program
    .command("dead-letter")
    .description("keys that are not tried any more: see them, and try them again")
    .addHelpText("after", HELP);

  withFilter(deadLetter.command("list").description("dead keys, since when and of what")).action(
    ({ output, ...typed }: ShowFlags) =>
      runAtDesk(async (desk, settings) => {
        const query = checkTyped(deadLetterQuerySchema, { cluster: settings.cluster, ...typed });
        const list = await desk.listKeys({ ...query, phase: "dead" });
        print(output, list, deadRows(list));
      }),
  );
  withOrder(
    deadLetter
      .command("release")
      .description("try dead keys again: one, or all that match")
      .argument("<controller>", "its name"),
  )
    .option("-n, --namespace <name>", "of the object, or of all that match")
    .option("--name <name>", "one object")
    .option("--contains <part>", "all with this in their name")
    .option("--all", "all of the controller")
    .option("--dry-run", "only say how many there are")
    .action((controller: string, { output, by, all = false, ...typed }: ReleaseFlags) =>
      runAtDesk(async (desk, settings) => {
        const { namespace, name, contains } = typed;
        const narrowed = [namespace, name, contains].some((part) => part !== undefined);
        if (narrowed === all) {
          const cure = all
            ? "leave it out, or leave out the other filters"
            : "say which keys, or --all";
          throw new KonvergeError("invalid_request", `--all: ${cure}`);
        }
        const order = { cluster: settings.cluster, controller, by: by ?? systemUser(), ...typed };
        const answer = await desk.release(checkTyped(releaseOrderSchema, order), "cli");
        const { count, dryRun } = answer;
        print(output, answer, dryRun ? `${count} would be released` : `${count} released`);
      }),
    );
}
