import { defined } from "@konverge/core";
import type { Client, Pause } from "@konverge/client";
import type { Command } from "commander";
import { findController } from "../ask/find-controller.ts";
import { print } from "../text/output.ts";
import { orderRows, pauseRows, queueRows } from "../text/queue-text.ts";
import {
  groupHelp,
  orderOf,
  runWithClient,
  withClient,
  withOrder,
  type ClientFlags,
  type OrderFlags,
} from "../ask/run-with-client.ts";
import { pick } from "../ask/show-pages.ts";

interface ScopeFlags extends OrderFlags {
  readonly namespace?: string;
  readonly name?: string;
}

const HELP = `
  konverge queue list
  konverge queue pause node-pool -n demo --name blue --reason "it deletes machines"
  konverge queue pause -n demo --reason "the tenant is being moved"
  konverge queue pauses
  konverge queue resume node-pool -n demo --name blue --reason "fixed in 4712"
  konverge queue orders node-pool

What is paused keeps its requests, and what runs may end. A namespace alone is
paused for all controllers known by now. docs/operating.md says what each order
does.`;

const NAMES = { options: { "/name": "--name" } };

export function addQueueCommand(program: Command): void {
  const queue = program
    .command("queue")
    .description("see what waits and what is paused; pause and resume")
    .addHelpText("after", groupHelp(HELP));

  withClient(
    queue.command("list").description("how much of each controller and workflow waits"),
  ).action((flags: ClientFlags) =>
    runWithClient(flags, async ({ client, cluster }) => {
      const list = await client.queues.list({ cluster });
      print(flags.output, {
        document: list,
        items: [...list.items, ...list.workflows],
        names: [
          ...list.items.map(({ controller }) => controller),
          ...list.workflows.map(({ workflow }) => `workflow.${workflow}`),
        ],
        table: () => queueRows(list),
        empty: `no worker has announced a controller or workflow on "${cluster}" yet`,
      });
    }),
  );
  withClient(
    queue.command("pauses").description("what is paused, by whom, why and since when"),
  ).action((flags: ClientFlags) =>
    runWithClient(flags, async ({ client, cluster }) => {
      showPauses(flags, await client.queues.pauses({ cluster }));
    }),
  );
  withScope(
    queue
      .command("pause")
      .description("start nothing of a controller, namespace or object any more"),
  ).action((controller: string | undefined, flags: ScopeFlags) =>
    runWithClient(
      flags,
      async ({ client, cluster }) => {
        const { order, write } = orderOf(flags);
        const body = { cluster, ...scopeOf(controller, flags), ...order };
        if (flags.dryRun === true)
          return await showMeant(flags, client, { verb: "pause", ...body });
        showPauses(flags, await client.queues.pause(body, write));
      },
      NAMES,
    ),
  );
  withScope(queue.command("resume").description("end a pause of the same scope")).action(
    (controller: string | undefined, flags: ScopeFlags) =>
      runWithClient(
        flags,
        async ({ client, cluster }) => {
          const { order, write } = orderOf(flags);
          const body = { cluster, ...scopeOf(controller, flags), ...order };
          if (flags.dryRun === true)
            return await showMeant(flags, client, { verb: "resume", ...body });
          const answer = await client.queues.resume(body, write);
          print(flags.output, {
            document: answer,
            names: [],
            table: () =>
              `resumed, ${answer.resumed} ${answer.resumed === 1 ? "key was" : "keys were"} waiting`,
          });
        },
        NAMES,
      ),
  );
  withClient(
    queue
      .command("orders")
      .description("what people ordered, newest first")
      .argument("<controller>", "its name"),
  ).action((controller: string, flags: ClientFlags) =>
    runWithClient(flags, async ({ client, cluster }) => {
      const list = await client.controllers.orders({ cluster, controller });
      print(flags.output, {
        document: list,
        items: list.items,
        names: list.items.map(({ scope }) => scope),
        table: () => orderRows(list),
        empty: "nobody has ordered anything",
      });
    }),
  );
}

function showPauses({ output }: ClientFlags, list: Parameters<typeof pauseRows>[0]): void {
  print(output, {
    document: list,
    items: list.items,
    names: list.items.map(({ controller, scope }) =>
      scope.kind === "key"
        ? scope.key
        : scope.kind === "namespace"
          ? `${controller} -n ${scope.namespace}`
          : controller,
    ),
    table: () => pauseRows(list),
    empty: "nothing is paused",
  });
}

/** The controllers that an order would reach. */
async function showMeant(
  { output }: ClientFlags,
  client: Client,
  { verb, cluster, controller, namespace, name }: Pause & { readonly verb: "pause" | "resume" },
): Promise<void> {
  const found =
    controller === undefined
      ? (await client.controllers.list({ cluster })).items
      : [await findController({ client, cluster: cluster ?? "default" }, controller)];
  const items = found.map((item) => ({ cluster, controller: item.name, namespace, name }));
  print(output, {
    document: { items },
    items,
    names: items.map((item) => item.controller),
    table: () =>
      items
        .map((item) => [item.controller, namespace, name].filter((part) => part !== undefined))
        .map((parts) => `would ${verb} ${parts.join(" ")}`)
        .join("\n"),
    empty: "no controller is known",
  });
}

function withScope(command: Command): Command {
  return withOrder(withClient(command))
    .argument("[controller]", "its name; left out, all controllers of the namespace")
    .option("-n, --namespace <name>", "of the object, or the whole namespace")
    .option("--name <name>", "of one object");
}

function scopeOf(controller: string | undefined, flags: ScopeFlags) {
  return {
    ...defined({ controller }),
    ...pick(flags, ["namespace", "name"]),
  };
}
