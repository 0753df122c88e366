import { findRateIssue } from "@konverge/core";
import type { GuardView } from "@konverge/contracts";
import type { Client, Order, WriteOptions } from "@konverge/client";
import { InvalidArgumentError, type Command } from "commander";
import { guardDetails, guardRows } from "../text/guard-text.ts";
import { print, say } from "../text/output.ts";
import {
  groupHelp,
  orderOf,
  runWithClient,
  withServer,
  withOrder,
  type ClientFlags,
  type OrderFlags,
} from "../ask/run-with-client.ts";

/** Of `set-rate`: the configured rate again. */
const CONFIGURED = "configured";

const HELP = `
  konverge guard list
  konverge guard show default -o json
  konverge guard isolate default --reason "etcd is being restored"
  konverge guard reset default --reason "etcd is back" --by ada
  konverge guard set-rate default 50 --reason "the server is slow today"
  konverge guard set-rate default ${CONFIGURED} --reason "it is fast again"

A worker's cluster is "default" unless KONVERGE_CLUSTER says otherwise. Orders
hold for all workers at once, also for those that start later, and are kept,
with who gave them and why. Work that may not call the API server waits: it
does not fail and uses up no attempt.`;

const CURES = {
  cures: { not_found: "take a name from `konverge guard list`" },
  options: { "/name": "<cluster>" },
};

export function addGuardCommand(program: Command): void {
  const guard = program
    .command("guard")
    .description("see what protects the API servers, and give it orders")
    .addHelpText("after", groupHelp(HELP));

  withServer(guard.command("list").description("the guards of all clusters")).action(
    (flags: ClientFlags) =>
      runWithClient(flags, async ({ client }) => {
        const list = await client.guards.list();
        print(flags.output, {
          document: list,
          items: list.items,
          names: list.items.map(({ cluster }) => cluster),
          table: () => guardRows(list.items),
          empty: "no worker has guarded a cluster yet",
        });
      }),
  );
  withServer(
    withTarget(guard.command("show")).description(
      "one guard, with its last transitions and what caused them",
    ),
  ).action((cluster: string, flags: ClientFlags) =>
    runWithClient(
      flags,
      async ({ client }) => {
        const view = await client.guards.get(cluster);
        print(flags.output, {
          document: view,
          names: [view.cluster],
          table: () => guardDetails(view),
        });
      },
      CURES,
    ),
  );
  withGuardOrder(
    withTarget(guard.command("isolate")).description(
      "send nothing to the API server any more, until reset; work waits",
    ),
  ).action((cluster: string, flags: OrderFlags) =>
    giveOrder(cluster, flags, (client, order, write) =>
      client.guards.isolate(cluster, order, write),
    ),
  );
  withGuardOrder(
    withTarget(guard.command("reset")).description(
      "close the breaker: at a fifth of the rate, as after an outage",
    ),
  ).action((cluster: string, flags: OrderFlags) =>
    giveOrder(cluster, flags, (client, order, write) => client.guards.reset(cluster, order, write)),
  );
  withGuardOrder(
    withTarget(guard.command("set-rate"))
      .description("set the rate of the whole fleet, at once and until it is given back")
      .argument(
        "<rate>",
        `calls per second, or "${CONFIGURED}" for the configured rate`,
        parseRate,
      ),
  ).action((cluster: string, rate: number | typeof CONFIGURED, flags: OrderFlags) =>
    giveOrder(cluster, flags, (client, order, write) =>
      client.guards.setRate(
        cluster,
        { ...order, ratePerSecond: rate === CONFIGURED ? null : rate },
        write,
      ),
    ),
  );
}

function withGuardOrder(command: Command): Command {
  return withOrder(withServer(command));
}

function withTarget(command: Command): Command {
  return command.argument("<cluster>", "its name, as `konverge guard list` shows it");
}

function giveOrder(
  cluster: string,
  flags: OrderFlags,
  give: (client: Client, order: Order, write: WriteOptions) => Promise<GuardView>,
): Promise<void> {
  return runWithClient(
    flags,
    async ({ client }) => {
      const { order, write } = orderOf(flags);
      const isDry = flags.dryRun === true;
      const view = isDry ? await client.guards.get(cluster) : await give(client, order, write);
      if (isDry) say(`dry run by ${order.by}; this is how it stands, and nothing was ordered`);
      print(flags.output, {
        document: view,
        names: [view.cluster],
        table: () => guardRows([view]),
      });
    },
    CURES,
  );
}

function parseRate(text: string): number | typeof CONFIGURED {
  if (text === CONFIGURED) return CONFIGURED;
  const rate = text.trim() === "" ? Number.NaN : Number(text);
  const issue = findRateIssue(rate);
  if (issue === undefined) return rate;
  throw new InvalidArgumentError(`It ${issue}, or "${CONFIGURED}".`);
}
