import type { Client, Pause, WriteOptions } from "@konverge/client";
import type { PauseList } from "@konverge/contracts";
import type { Command } from "commander";
import { findController } from "../ask/find-controller.ts";
import { print, type Shown } from "../text/output.ts";
import { actionRows, pauseRows, queueRows } from "../text/queue-text.ts";
import {
  groupHelp,
  actionOf,
  runWithClient,
  withClient,
  withAction,
  type ClientFlags,
  type ActionFlags,
} from "../ask/run-with-client.ts";
import { pick } from "../ask/show-pages.ts";
import { scopeOf } from "../ask/targets-of.ts";
import { runWatched, withWatch, type WatchFlags } from "../ask/show-watched.ts";

interface ScopeFlags extends ActionFlags {
  readonly namespace?: string;
  readonly name?: string;
}

const HELP = `
  konverge queue list
  konverge queue pause node-pool blue -n demo --reason "deletes machines"
  konverge queue pause -n demo --reason "tenant migration"
  konverge queue pauses
  konverge queue resume node-pool blue -n demo --reason "fixed in 4712"
  konverge queue actions node-pool

A pause keeps requests pending and lets running attempts finish. A namespace
without a controller is paused for all controllers that exist now. See
docs/operating.md for each action.`;

const NAMES = { options: { "/name": "--name" } };

export function addQueueCommand(program: Command): void {
  const queue = program
    .command("queue")
    .description("Show queues and pauses; pause and resume")
    .addHelpText("afterAll", groupHelp(HELP));
  addList(queue);
  addPauses(queue);
  addPause(queue);
  addResume(queue);
  addActions(queue);
}

function addList(queue: Command): void {
  withWatch(
    withClient(queue.command("list").description("List queue lengths by controller and workflow")),
  ).action((flags: WatchFlags) =>
    runWatched(flags, async ({ client, cluster }) => {
      const list = await client.queues.list({ cluster });
      return {
        document: list,
        items: [...list.items, ...list.workflows],
        names: [
          ...list.items.map(({ controller }) => controller),
          ...list.workflows.map(({ workflow }) => `workflow.${workflow}`),
        ],
        table: () => queueRows(list),
        empty: `no controllers or workflows found in cluster "${cluster}"; start a worker`,
      };
    }),
  );
}

function addPauses(queue: Command): void {
  withWatch(
    withClient(queue.command("pauses").description("List pauses with author, reason and time")),
  ).action((flags: WatchFlags) =>
    runWatched(flags, async ({ client, cluster }) =>
      shownPauses(await client.queues.pauses({ cluster })),
    ),
  );
}

function addPause(queue: Command): void {
  addChange(queue.command("pause").description("Pause a controller, namespace or object"), {
    verb: "pause",
    give: async (client, ...change) => shownPauses(await client.queues.pause(...change)),
  });
}

function addResume(queue: Command): void {
  addChange(queue.command("resume").description("Resume a controller, namespace or object"), {
    verb: "resume",
    async give(client, ...change) {
      const answer = await client.queues.resume(...change);
      const keys = answer.resumed === 1 ? "key" : "keys";
      const text = `resumed ${answer.resumed} ${keys} with pending requests`;
      return { document: answer, names: [], table: () => text };
    },
  });
}

interface Change {
  readonly verb: "pause" | "resume";
  readonly give: (client: Client, body: Pause, write: WriteOptions) => Promise<Shown>;
}

function addChange(command: Command, { verb, give }: Change): void {
  withScope(command).action(
    (controller: string | undefined, name: string | undefined, flags: ScopeFlags) =>
      runWithClient(
        flags,
        async ({ client, cluster }) => {
          const { action, write } = actionOf(flags);
          const place = { ...pick(flags, ["namespace", "name"]), cluster };
          const body = { ...scopeOf(controller, name, place), ...action };
          if (flags.dryRun === true) return await showMeant(flags, client, { verb, ...body });
          print(flags.output, await give(client, body, write));
        },
        NAMES,
      ),
  );
}

function addActions(queue: Command): void {
  withWatch(
    withClient(
      queue
        .command("actions")
        .description("List operator actions, newest first")
        .argument("<controller>", "Controller name"),
    ),
  ).action((controller: string, flags: WatchFlags) =>
    runWatched(flags, async ({ client, cluster }) => {
      const list = await client.controllers.actions({ cluster, controller });
      return {
        document: list,
        items: list.items,
        names: list.items.map(({ scope }) => scope),
        table: () => actionRows(list),
        empty: "no actions recorded",
      };
    }),
  );
}

function shownPauses(list: PauseList): Shown {
  return {
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
    empty: "no pauses",
  };
}

/** Prints the controllers that the action would affect. */
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
    empty: "no controllers found",
  });
}

function withScope(command: Command): Command {
  return withAction(withClient(command))
    .argument(
      "[controller]",
      "Controller name or full key; omit it for all controllers of a namespace",
    )
    .argument("[name]", "Object name")
    .option("-n, --namespace <name>", "Namespace; without an object, the whole namespace")
    .option("--name <name>", "Object name, as an option");
}
