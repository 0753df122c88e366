import {
  KEY_PHASES,
  keyQuerySchema,
  orderSchema,
  pauseOrderSchema,
  type PauseOrder,
  type Settings,
} from "@konverge/contracts";
import type { Command } from "commander";
import { keyRows, orderRows, pauseRows } from "../queue-text.ts";
import {
  checkTyped,
  print,
  runAtDesk,
  withFilter,
  withOrder,
  withOutput,
  type OrderFlags,
  type ShowFlags,
} from "../run-at-desk.ts";
import { systemUser } from "../system-user.ts";

interface ScopeFlags extends OrderFlags {
  readonly namespace?: string;
  readonly name?: string;
}

const HELP = `
Redis is found by KONVERGE_REDIS_URL, the installation in it by KONVERGE_PREFIX; no HTTP API is needed.

  konverge queue list --phase backoff -n demo
  konverge queue pause node-pool -n demo --name blue --reason "it deletes machines"
  konverge queue pause -n demo --reason "the tenant is being moved"       # all controllers known by now
  konverge queue pauses
  konverge queue resume node-pool -n demo --name blue --reason "fixed in 4712"
  konverge queue cancel 'node-pool/default/nodepools.demo.konverge.dev/demo/blue@17' --reason "asked for the wrong one"
  konverge queue orders node-pool

What is paused keeps its requests, and what runs may end. docs/operating.md says what each order does.
Exit codes: 0 done, 2 something to correct in what was typed or set, 3 not known or not paused, 6 Redis is away.`;

export function addQueueCommand(program: Command): void {
  const queue = program
    .command("queue")
    .description("see what waits, fails and is paused; pause, resume and cancel")
    .addHelpText("after", HELP);

  withFilter(queue.command("list").description("keys by phase, namespace and part of their name"))
    .option("--phase <phase>", `one of ${KEY_PHASES.join(", ")}`)
    .action(({ output, ...typed }: ShowFlags) =>
      runAtDesk(async (desk, settings) => {
        const query = checkTyped(keyQuerySchema, { cluster: settings.cluster, ...typed });
        const list = await desk.listKeys(query);
        print(output, list, keyRows(list));
      }),
    );
  withOutput(
    queue.command("pauses").description("what is paused, by whom, why and since when"),
  ).action(({ output, cluster }: ShowFlags) =>
    runAtDesk(async (desk, settings) => {
      const list = await desk.listPauses(cluster ?? settings.cluster);
      print(output, list, pauseRows(list));
    }),
  );
  withScope(
    queue
      .command("pause")
      .description("start nothing of a controller, namespace or object any more"),
  ).action((controller: string | undefined, { output, ...typed }: ScopeFlags) =>
    runAtDesk(async (desk, settings) => {
      const list = await desk.pause(orderOf(settings, controller, typed));
      print(output, list, pauseRows(list));
    }),
  );
  withScope(queue.command("resume").description("end a pause of the same scope")).action(
    (controller: string | undefined, { output, ...typed }: ScopeFlags) =>
      runAtDesk(async (desk, settings) => {
        const answer = await desk.resume(orderOf(settings, controller, typed));
        print(output, answer, `resumed, ${answer.resumed} keys were waiting`);
      }),
  );
  withOrder(
    queue
      .command("cancel")
      .description("withdraw one request; what others requested goes on")
      .argument("<request>", "its id, as it was answered"),
  ).action((request: string, { output, by, reason }: OrderFlags) =>
    runAtDesk(async (desk) => {
      const order = checkTyped(orderSchema, { by: by ?? systemUser(), reason });
      const answer = await desk.cancel(request, order);
      print(output, answer, answer.result);
    }),
  );
  withOutput(
    queue
      .command("orders")
      .description("what people ordered, newest first")
      .argument("<controller>", "its name"),
  ).action((controller: string, { output, cluster }: ShowFlags) =>
    runAtDesk(async (desk, settings) => {
      const list = await desk.listOrders(cluster ?? settings.cluster, controller);
      print(output, list, orderRows(list));
    }),
  );
}

function withScope(command: Command): Command {
  return withOrder(command)
    .argument("[controller]", "its name; left out, all controllers of the namespace")
    .option("-n, --namespace <name>", "of the object, or the whole namespace")
    .option("--name <name>", "of one object");
}

function orderOf(
  settings: Settings,
  controller: string | undefined,
  { by, ...typed }: Omit<ScopeFlags, "output">,
): PauseOrder {
  const order = { cluster: settings.cluster, controller, by: by ?? systemUser(), ...typed };
  return checkTyped(pauseOrderSchema, order);
}
