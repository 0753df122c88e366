import { KonvergeError } from "@konverge/core";
import type { Command } from "commander";
import { KEY_OPTIONS, keyQueryOf, withNameFilters, type KeyFlags } from "../ask/key-filters.ts";
import { print } from "../text/output.ts";
import { deadRows } from "../text/queue-text.ts";
import {
  groupHelp,
  actionOf,
  runWithClient,
  withClient,
  withAction,
  type ActionFlags,
} from "../ask/run-with-client.ts";
import { scopeOf } from "../ask/targets-of.ts";
import { pick, showPages, withPages } from "../ask/show-pages.ts";

interface ReleaseFlags extends ActionFlags {
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

A release enqueues the keys like a user request: they run immediately, and
their failure counters are reset.`;

const NAMES = { options: { "/name": "--name" } };

export function addDeadLetterCommand(program: Command): void {
  const deadLetter = program
    .command("dead-letter")
    .description("List and release dead-lettered keys")
    .addHelpText("afterAll", groupHelp(HELP));

  withNameFilters(
    withPages(
      withClient(
        deadLetter.command("list").description("List dead-lettered keys with age and error"),
      ),
    ),
  ).action((flags: KeyFlags) =>
    runWithClient(
      flags,
      ({ client, cluster }) =>
        showPages(flags, client.deadLetters.list(keyQueryOf(flags, cluster)), {
          nameOf: ({ key }) => key,
          table: deadRows,
          empty: "no dead-lettered keys",
        }),
      KEY_OPTIONS,
    ),
  );
  withAction(
    withClient(
      deadLetter
        .command("release")
        .description("Release one dead-lettered key, or all that match")
        .argument("<controller>", "Controller name or full key")
        .argument("[name]", "Object name"),
    ),
  )
    .option("-n, --namespace <name>", "Namespace; _ for cluster-scoped objects")
    .option("--name <name>", "Object name, as an option")
    .option("--contains <part>", "Substring of object names")
    .option("--all", "All dead-lettered keys of the controller")
    .action((controller: string, name: string | undefined, flags: ReleaseFlags) =>
      runWithClient(
        flags,
        async ({ client, cluster }) => {
          const scope = scopeOf(controller, name, {
            ...pick(flags, ["namespace", "name"]),
            cluster,
          });
          checkNarrowed({ ...flags, ...scope });
          const { action, write } = actionOf(flags);
          const more = pick(flags, ["contains", "dryRun"]);
          const answer = await client.deadLetters.release(
            { ...scope, controller: scope.controller ?? controller, ...more, ...action },
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

/** Requires `--all` to release every key, so that a forgotten filter cannot. */
function checkNarrowed({ namespace, name, contains, all = false }: ReleaseFlags): void {
  const narrowed = [namespace, name, contains].some((part) => part !== undefined);
  if (narrowed !== all) return;
  const fix = all
    ? "cannot be combined with other filters; omit one of them"
    : "is required if no other filter is set";
  throw new KonvergeError("invalid_request", `--all: ${fix}`);
}
