import { KonvergeError } from "@konverge/core";
import type { Command } from "commander";
import { KEY_OPTIONS, keyQueryOf, withNameFilters, type KeyFlags } from "../ask/key-filters.ts";
import { print } from "../text/output.ts";
import { deadRows } from "../text/queue-text.ts";
import {
  groupHelp,
  orderOf,
  runWithClient,
  withClient,
  withOrder,
  type OrderFlags,
} from "../ask/run-with-client.ts";
import { pick, showPages, withPages } from "../ask/show-pages.ts";

interface ReleaseFlags extends OrderFlags {
  readonly namespace?: string;
  readonly name?: string;
  readonly contains?: string;
  readonly all?: boolean;
}

const HELP = `
  konverge dead-letter list -n demo
  konverge dead-letter release node-pool -n demo --name blue --reason "quota raised"
  konverge dead-letter release node-pool -n demo --contains web --dry-run --reason "how many?"
  konverge dead-letter release node-pool --all --reason "fixed in 4712"

A release requests the keys as a person does: they run at once, and their
counters begin anew.`;

const NAMES = { options: { "/name": "--name" } };

export function addDeadLetterCommand(program: Command): void {
  const deadLetter = program
    .command("dead-letter")
    .description("keys that are not tried any more: see them, and try them again")
    .addHelpText("after", groupHelp(HELP));

  withNameFilters(
    withPages(
      withClient(deadLetter.command("list").description("dead keys, since when and of what")),
    ),
  ).action((flags: KeyFlags) =>
    runWithClient(
      flags,
      ({ client, cluster }) =>
        showPages(flags, client.deadLetters.list(keyQueryOf(flags, cluster)), {
          nameOf: ({ key }) => key,
          table: deadRows,
          empty: "no dead letter",
        }),
      KEY_OPTIONS,
    ),
  );
  withOrder(
    withClient(
      deadLetter
        .command("release")
        .description("try dead keys again: one, or all that match")
        .argument("<controller>", "its name"),
    ),
  )
    .option("-n, --namespace <name>", "of the object, or of all that match")
    .option("--name <name>", "one object")
    .option("--contains <part>", "all with this in their name")
    .option("--all", "all of the controller")
    .action((controller: string, flags: ReleaseFlags) =>
      runWithClient(
        flags,
        async ({ client, cluster }) => {
          checkNarrowed(flags);
          const { order, write } = orderOf(flags);
          const selection = pick(flags, ["namespace", "name", "contains", "dryRun"]);
          const answer = await client.deadLetters.release(
            { cluster, controller, ...selection, ...order },
            write,
          );
          const { count, dryRun } = answer;
          print(flags.output, {
            document: answer,
            names: [],
            table: () => (dryRun ? `${count} would be released` : `${count} released`),
          });
        },
        NAMES,
      ),
    );
}

/** All of a controller are meant only by those who say so. */
function checkNarrowed({ namespace, name, contains, all = false }: ReleaseFlags): void {
  const narrowed = [namespace, name, contains].some((part) => part !== undefined);
  if (narrowed !== all) return;
  const cure = all ? "leave it out, or leave out the other filters" : "say which keys, or --all";
  throw new KonvergeError("invalid_request", `--all: ${cure}`);
}
