import { REQUEST_CLASSES, type NewMutation, type RequestedClass } from "@konverge/contracts";
import { defined } from "@konverge/core";
import { Option, type Command } from "commander";
import { changesOf, withChanges, type ChangeFlags } from "../ask/change-options.ts";
import {
  runWithClient,
  withClient,
  withIdempotencyKey,
  type Asking,
  type ClientFlags,
} from "../ask/run-with-client.ts";
import { oneLine } from "../process/explain-failure.ts";
import { timeoutOption } from "../ask/timeout-option.ts";
import { mutationExitCode, mutationNotes, mutationRows } from "../text/mutation-text.ts";
import { print, printNote } from "../text/output.ts";

interface MutateFlags extends ClientFlags, ChangeFlags {
  readonly namespace?: string;
  readonly apiVersion?: string;
  readonly subresource?: "status" | "scale";
  readonly uid?: string;
  readonly create?: true;
  readonly deadline?: string;
  readonly class?: RequestedClass;
  readonly id?: string;
  readonly wait?: boolean;
  readonly timeout: number;
  readonly dryRun?: boolean;
  readonly idempotencyKey?: string;
}

const HELP = `
Examples:
  konverge mutate Deployment web -n default --set /spec/replicas=5 --if /spec/replicas=3 --wait
  konverge mutate ConfigMap usage -n default --increment /data/requests=25 --create --id invoice-1001
  konverge mutate ConfigMap settings -n default --set-string /data/port=8080 --remove /data/legacy
  konverge mutate Deployment web -n default --append /metadata/finalizers=shop.example/backup
  konverge mutate Deployment web -n default --patch-file patch.json --if-generation 4 --deadline 30s

Paths are JSON Pointers. Values are JSON, or text if they are not JSON. Changes are
made in their order, and either all or none. A --patch-file with a JSON list is a JSON
Patch, and one with an object is a merge patch. The configuration must list the kind
in mutations.kinds.
With --wait, the exit code is 1 if the mutation was rejected, cancelled or expired, 3 if
the object does not exist, and 4 if a precondition failed or the object was replaced.
Exit codes: see konverge --help.`;

export function addMutateCommand(program: Command): void {
  withIdempotencyKey(
    withClient(
      withChanges(
        program
          .command("mutate")
          .description("Change an object exactly once")
          .argument("<kind>", "Kind, such as Deployment")
          .argument("<name>", "Object name")
          .option("-n, --namespace <name>", "Namespace; omit for cluster-scoped objects"),
      ),
    ),
  )
    .option("--create", "Create the object if it does not exist")
    .option("--uid <uid>", "Change only the object with this uid")
    .addOption(
      new Option("--subresource <name>", "Subresource to change").choices(["status", "scale"]),
    )
    .option("--api-version <version>", "API version, if several groups have a kind of this name")
    .option("--deadline <duration>", "Time until the mutation expires, such as 30s (default: none)")
    .addOption(
      new Option("--class <class>", "Class of the mutation (default: interactive)").choices(
        REQUEST_CLASSES,
      ),
    )
    .option("--id <id>", "ID; a mutation with the same ID is applied once (default: random)")
    .option("--wait", "Wait for the outcome")
    .addOption(timeoutOption())
    .option("--dry-run", "Print the mutation without submitting it")
    .addHelpText("after", HELP)
    .action((kind: string, name: string, flags: MutateFlags) =>
      runWithClient(flags, (asking) => mutate(asking, { kind, name }, flags), {
        options: OPTIONS,
      }),
    );
}

/** The options behind the fields of a mutation. */
const OPTIONS: Readonly<Record<string, string>> = {
  "/kind": "<kind>",
  "/apiVersion": "--api-version",
  "/uid": "--uid",
  "/create": "--create",
  "/subresource": "--subresource",
  "/deadline": "--deadline",
  "/id": "--id",
  "/changes": "changes",
};

async function mutate(
  { client, cluster }: Asking,
  object: { readonly kind: string; readonly name: string },
  flags: MutateFlags,
): Promise<void> {
  const { namespace, apiVersion, subresource, uid, deadline, id, class: of } = flags;
  const { changes, conditions } = await changesOf(flags);
  const mutation: NewMutation = {
    cluster,
    ...object,
    changes,
    ...defined({
      namespace,
      apiVersion,
      subresource,
      uid,
      deadline,
      id,
      class: of,
      create: flags.create,
      if: conditions,
    }),
  };
  const { output } = flags;
  if (flags.dryRun === true) {
    return print(output, {
      document: mutation,
      names: [object.name],
      table: () => JSON.stringify(mutation, null, 2),
    });
  }
  const write = flags.idempotencyKey === undefined ? {} : { idempotencyKey: flags.idempotencyKey };
  const submitted = await client.mutations.submit(mutation, write);
  if (flags.wait !== true) {
    return print(output, {
      document: submitted,
      names: [submitted.id],
      table: () => submitted.id,
    });
  }
  if (process.stderr.isTTY) printNote(`waiting for ${submitted.id}`);
  const ended = await client.mutations.wait(submitted.id, { timeoutMs: flags.timeout });
  print(output, { document: ended, names: [ended.id], table: () => mutationRows([ended]) });
  for (const note of mutationNotes(ended)) printNote(`konverge: ${oneLine(note)}`);
  process.exitCode = mutationExitCode(ended);
}
