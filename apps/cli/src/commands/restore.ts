import type { QueueAccess } from "@konverge/api";
import { clusterOf } from "@konverge/contracts";
import { RESTORE_KINDS, type RestoreKind } from "@konverge/core";
import { Argument, Option, type Command } from "commander";
import { runWithAccess } from "../ask/run-with-access.ts";
import { systemUser } from "../ask/system-user.ts";
import { readRestoreReport } from "../restore/read-report.ts";
import { COMMON_OPTIONS, print, withOutput, type Output } from "../text/output.ts";
import { restoreText } from "../restore/restore-text.ts";

interface RestoreFlags {
  readonly output: Output;
  readonly cluster?: string;
}

const HELP = `
Workers detect that Redis was restored from a backup, and hold its work. These commands need access to Redis
(KONVERGE_REDIS_URL, KONVERGE_PREFIX) and never use HTTP.

Examples:
  konverge restore check
  konverge restore accept pauses guard
  konverge restore accept keys runs --cluster default
  konverge restore accept tokens --by ada

Attempts start once keys, pauses and guard are accepted. Runs continue once runs, pauses and guard are accepted.
Accepting tokens applies to all clusters. check exits with 4 while any state is held. docs/restore.md explains each
step.
Exit codes: see konverge --help.`;

const HELD = 4;

export function addRestoreCommand(program: Command): void {
  const restore = program
    .command("restore")
    .description("Check and accept a restored Redis")
    .addHelpText("after", HELP);
  addCheck(restore);
  addAccept(restore);
}

function withCluster(command: Command): Command {
  return withOutput(command).addOption(
    new Option("--cluster <name>", "Cluster name").helpGroup(COMMON_OPTIONS),
  );
}

function addCheck(restore: Command): void {
  withCluster(
    restore
      .command("check")
      .description(
        "Report the work that a restored Redis would start or repeat (default: all clusters)",
      ),
  ).action(({ output, cluster }: RestoreFlags) =>
    runWithAccess(async (access, settings) => {
      const names = cluster === undefined ? await access.clusters() : [cluster];
      const report = await readRestoreReport(access, settings, names);
      const held = [...report.clusters, report.tokens].flatMap((state) => state.held);
      print(output, {
        document: report,
        items: report.clusters,
        names: [...new Set(held)],
        table: () => restoreText(report),
      });
      if (held.length > 0) process.exitCode = HELD;
    }),
  );
}

function addAccept(restore: Command): void {
  withCluster(
    restore
      .command("accept")
      .description("Accept the state of a restored Redis and start its work"),
  )
    .addArgument(new Argument("<kinds...>", "Kinds of state to accept").choices(RESTORE_KINDS))
    .option("--by <name>", "Author (default: system user)")
    .action(
      (
        kinds: RestoreKind[],
        { output, cluster: named, by = systemUser() }: RestoreFlags & { readonly by?: string },
      ) =>
        runWithAccess(async (access, settings) => {
          const cluster = named ?? clusterOf(settings);
          const held = await accept(access, { cluster, kinds, by });
          print(output, {
            document: { cluster, held },
            items: held,
            names: held,
            table: () => `still held: ${held.join(", ")}`,
            empty: "nothing is held",
          });
        }),
    );
}

/** Returns the kinds that are still held. */
async function accept(
  access: QueueAccess,
  {
    cluster,
    kinds,
    by,
  }: { readonly cluster: string; readonly kinds: RestoreKind[]; readonly by: string },
): Promise<readonly RestoreKind[]> {
  const { restore, audit } = access;
  const own = kinds.filter((kind) => kind !== "tokens");
  if (own.length > 0) await restore.accept(cluster, own, by);
  if (own.length < kinds.length) await restore.acceptTokens(by);
  await audit.record({ action: "restore.accept", by, cluster, filter: kinds.join(", ") });
  const [state, tokens] = await Promise.all([restore.read(cluster), restore.readTokens()]);
  return [...state.held, ...tokens.held];
}
