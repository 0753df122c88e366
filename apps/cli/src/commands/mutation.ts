import { defined, MUTATION_STATES, type MutationState } from "@konverge/core";
import { Option, type Command } from "commander";
import {
  groupHelp,
  runWithClient,
  withClient,
  withIdempotencyKey,
  withServer,
  type ClientFlags,
} from "../ask/run-with-client.ts";
import { pick, showPages, withPages, type PageFlags } from "../ask/show-pages.ts";
import { oneLine } from "../process/explain-failure.ts";
import { kindRows, mutationNotes, mutationRows } from "../text/mutation-text.ts";
import { print, printNote } from "../text/output.ts";

const HELP = `
  konverge mutation list --kind ConfigMap -n default --name usage
  konverge mutation list --state rejected
  konverge mutation get default/invoice-1001
  konverge mutation cancel default/invoice-1001
  konverge mutation kinds

To submit a mutation, use konverge mutate. Mutations are kept for a day after their end.`;

interface ListFlags extends PageFlags, ClientFlags {
  readonly kind?: string;
  readonly apiVersion?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly state?: MutationState;
}

export function addMutationCommand(program: Command): void {
  const mutation = program
    .command("mutation")
    .description("Inspect and cancel mutations of objects")
    .addHelpText("afterAll", groupHelp(HELP));
  addList(mutation);
  addGet(mutation);
  addCancel(mutation);
  addKinds(mutation);
}

function addList(mutation: Command): void {
  withPages(withClient(mutation.command("list").description("List mutations, newest first")))
    .option("--kind <kind>", "Kind, such as Deployment")
    .option("--api-version <version>", "API version, if several groups have a kind of this name")
    .option("-n, --namespace <name>", "Namespace; _ for cluster-scoped objects")
    .option("--name <name>", "Object name (needs --kind)")
    .addOption(new Option("--state <state>", "State").choices(MUTATION_STATES))
    .action((flags: ListFlags) =>
      runWithClient(
        flags,
        ({ client, cluster }) => {
          const filters = pick(flags, ["kind", "apiVersion", "namespace", "name", "state"]);
          const query = { cluster, limit: Number(flags.limit), ...filters };
          return showPages(
            flags,
            client.mutations.list({ ...query, ...defined({ cursor: flags.cursor }) }),
            { nameOf: ({ id }) => id, table: mutationRows, empty: "no mutations found" },
          );
        },
        { options: { "/kind": "--kind", "/apiVersion": "--api-version", "/name": "--name" } },
      ),
    );
}

function addGet(mutation: Command): void {
  withServer(
    mutation
      .command("get")
      .description("Show a mutation with its outcome")
      .argument("<mutation>", "Mutation ID, as printed by konverge mutate"),
  ).action((id: string, flags: ClientFlags) =>
    runWithClient(flags, async ({ client }) => {
      const found = await client.mutations.get(id);
      print(flags.output, {
        document: found,
        names: [found.id],
        table: () => mutationRows([found]),
      });
      for (const note of mutationNotes(found)) printNote(`konverge: ${oneLine(note)}`);
    }),
  );
}

interface CancelFlags extends ClientFlags {
  readonly idempotencyKey?: string;
  readonly dryRun?: boolean;
}

function addCancel(mutation: Command): void {
  withIdempotencyKey(
    withServer(
      mutation
        .command("cancel")
        .description("Cancel a waiting mutation")
        .argument("<mutation>", "Mutation ID, as printed by konverge mutate")
        .option("--dry-run", "Print the mutation without cancelling it"),
    ),
  ).action((id: string, flags: CancelFlags) =>
    runWithClient(flags, async ({ client }) => {
      const write = defined({ idempotencyKey: flags.idempotencyKey });
      const ended =
        flags.dryRun === true
          ? await client.mutations.get(id)
          : await client.mutations.cancel(id, write);
      print(flags.output, { document: ended, names: [ended.id], table: () => ended.state });
      if (flags.dryRun === true) printNote("dry run; nothing was cancelled");
    }),
  );
}

function addKinds(mutation: Command): void {
  withClient(
    mutation.command("kinds").description("List the kinds that mutations may change"),
  ).action((flags: ClientFlags) =>
    runWithClient(flags, async ({ client, cluster }) => {
      const list = await client.mutations.kinds({ cluster });
      print(flags.output, {
        document: list,
        items: list.items,
        names: list.items.map(({ kind }) => kind),
        table: () => kindRows(list.items),
        empty: "no kinds are open; add mutations.kinds to the configuration and start a worker",
      });
    }),
  );
}
