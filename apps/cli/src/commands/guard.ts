import { findRateIssue } from "@konverge/core";
import type { GuardView } from "@konverge/contracts";
import type { Client, OperatorAction, WriteOptions } from "@konverge/client";
import { InvalidArgumentError, type Command } from "commander";
import { guardDetails, guardRows } from "../text/guard-text.ts";
import { print, printNote } from "../text/output.ts";
import {
  groupHelp,
  actionOf,
  runWithClient,
  withServer,
  withAction,
  type ActionFlags,
} from "../ask/run-with-client.ts";
import { runWatched, withWatch, type WatchFlags } from "../ask/show-watched.ts";

/** The argument of `set-rate` that removes the override. */
const CONFIGURED = "configured";

const HELP = `
  konverge guard list
  konverge guard show default -o json
  konverge guard isolate default --reason "etcd is being restored"
  konverge guard reset default --reason "etcd is back" --by ada
  konverge guard set-rate default 50 --reason "server overloaded"
  konverge guard set-rate default ${CONFIGURED} --reason "server recovered"

The cluster is "default" unless KONVERGE_CLUSTER sets another one. Actions apply
to all workers, including workers that start later, and store their author and
reason. Work without permission to call the API server is deferred. It does not
fail and consumes no attempt.`;

const FIXES = {
  fixes: { not_found: "run `konverge guard list` for the names" },
  options: { "/name": "<cluster>" },
};

export function addGuardCommand(program: Command): void {
  const guard = program
    .command("guard")
    .description("Inspect and control API server guards")
    .addHelpText("afterAll", groupHelp(HELP));
  addList(guard);
  addShow(guard);
  addIsolate(guard);
  addReset(guard);
  addSetRate(guard);
}

function addList(guard: Command): void {
  withWatch(
    withServer(guard.command("list").description("List rate and breaker of each cluster")),
  ).action((flags: WatchFlags) =>
    runWatched(flags, async ({ client }) => {
      const list = await client.guards.list();
      return {
        document: list,
        items: list.items,
        names: list.items.map(({ cluster }) => cluster),
        table: () => guardRows(list.items),
        empty: "no guards found; no worker has connected to a cluster",
      };
    }),
  );
}

function addShow(guard: Command): void {
  withWatch(
    withServer(
      withTarget(guard.command("show")).description(
        "Show a guard with its last transitions and their causes",
      ),
    ),
  ).action((cluster: string, flags: WatchFlags) =>
    runWatched(
      flags,
      async ({ client }) => {
        const view = await client.guards.get(cluster);
        return {
          document: view,
          names: [view.cluster],
          table: () => guardDetails(view),
        };
      },
      FIXES,
    ),
  );
}

function addIsolate(guard: Command): void {
  withGuardAction(
    withTarget(guard.command("isolate")).description(
      "Stop all API server calls until reset; work is deferred",
    ),
  ).action((cluster: string, flags: ActionFlags) =>
    guardAction(cluster, flags, (client, action, write) =>
      client.guards.isolate(cluster, action, write),
    ),
  );
}

function addReset(guard: Command): void {
  withGuardAction(
    withTarget(guard.command("reset")).description(
      "Close the circuit breaker and ramp up from a fifth of the rate",
    ),
  ).action((cluster: string, flags: ActionFlags) =>
    guardAction(cluster, flags, (client, action, write) =>
      client.guards.reset(cluster, action, write),
    ),
  );
}

function addSetRate(guard: Command): void {
  withGuardAction(
    withTarget(guard.command("set-rate"))
      .description("Override the rate limit of all workers")
      .argument("<rate>", `Calls per second, or "${CONFIGURED}" to remove the override`, parseRate),
  ).action((cluster: string, rate: number | typeof CONFIGURED, flags: ActionFlags) =>
    guardAction(cluster, flags, (client, action, write) =>
      client.guards.setRate(
        cluster,
        { ...action, ratePerSecond: rate === CONFIGURED ? null : rate },
        write,
      ),
    ),
  );
}

function withGuardAction(command: Command): Command {
  return withAction(withServer(command));
}

function withTarget(command: Command): Command {
  return command.argument("<cluster>", "Cluster name, as printed by konverge guard list");
}

function guardAction(
  cluster: string,
  flags: ActionFlags,
  give: (client: Client, action: OperatorAction, write: WriteOptions) => Promise<GuardView>,
): Promise<void> {
  return runWithClient(
    flags,
    async ({ client }) => {
      const { action, write } = actionOf(flags);
      const isDry = flags.dryRun === true;
      const view = isDry ? await client.guards.get(cluster) : await give(client, action, write);
      if (isDry)
        printNote(`dry run by ${action.by}; showing the current state, nothing was changed`);
      print(flags.output, {
        document: view,
        names: [view.cluster],
        table: () => guardRows([view]),
      });
    },
    FIXES,
  );
}

function parseRate(text: string): number | typeof CONFIGURED {
  if (text === CONFIGURED) return CONFIGURED;
  const rate = text.trim() === "" ? Number.NaN : Number(text);
  const issue = findRateIssue(rate);
  if (issue === undefined) return rate;
  throw new InvalidArgumentError(`The rate ${issue}; or use "${CONFIGURED}".`);
}
