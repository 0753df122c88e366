import { REQUEST_CLASSES, type ReconcileState, type RequestedClass } from "@konverge/contracts";
import { defined, handlerSucceeded, KonvergeError } from "@konverge/core";
import { Option, type Command } from "commander";
import { ProblemError } from "@konverge/client";
import { exitCodeOf } from "../process/exit-codes.ts";
import { oneLine } from "../process/explain-failure.ts";
import { findController } from "../ask/find-controller.ts";
import { print, printNote } from "../text/output.ts";
import { KEY_OPTIONS, keyQueryOf, withKeyFilters, type KeyFlags } from "../ask/key-filters.ts";
import { keyRows } from "../text/queue-text.ts";
import { stateNotes, stateRows } from "../text/reconcile-text.ts";
import { targetsOf, type Target } from "../ask/targets-of.ts";
import { showPages, withPages } from "../ask/show-pages.ts";
import { addWatchCommand } from "./watch.ts";
import {
  groupHelp,
  actionOf,
  runWithClient,
  withClient,
  withIdempotencyKey,
  withAction,
  withServer,
  type Asking,
  type ClientFlags,
  type ActionFlags,
} from "../ask/run-with-client.ts";
import { timeoutOption } from "../ask/timeout-option.ts";

interface EnqueueFlags extends ClientFlags {
  readonly namespace?: string;
  readonly reason?: string;
  readonly class?: RequestedClass;
  readonly wait?: boolean;
  readonly timeout: number;
  readonly dryRun?: boolean;
  readonly idempotencyKey?: string;
}
const HELP = `
  konverge reconcile enqueue node-pool blue -n demo --reason "deploy 4711" --wait
  konverge reconcile enqueue node-pool blue green red -n demo -o name
  konverge object list --phase backoff -o name | xargs konverge reconcile enqueue
  konverge reconcile get 'node-pool/default/nodepools.demo.konverge.dev/demo/blue@17'
  konverge reconcile list --phase backoff -n demo
  konverge reconcile cancel 'node-pool/default/nodepools.demo.konverge.dev/demo/blue@17' --reason "wrong object"`;

export function addReconcileCommand(program: Command): void {
  const reconcile = program
    .command("reconcile")
    .description("Enqueue reconcile requests and follow their results")
    .addHelpText("afterAll", groupHelp(HELP));
  addEnqueue(reconcile);
  addGet(reconcile);
  addList(reconcile);
  addWatchCommand(reconcile);
  addCancel(reconcile);
}

function addEnqueue(reconcile: Command): void {
  withIdempotencyKey(
    withClient(
      reconcile
        .command("enqueue")
        .description("Enqueue objects; requests for one object coalesce")
        .argument("<controller>", "Controller name, or one or more keys")
        .argument("[name...]", "Object names, up to 1000"),
    ),
  )
    .option("-n, --namespace <name>", "Namespace; omit for cluster-scoped objects")
    .option("--reason <text>", "Reason, shown in the history of the objects")
    .addOption(
      new Option(
        "--class <class>",
        "Class of the requests (default: interactive for one object, event for several)",
      ).choices(REQUEST_CLASSES),
    )
    .option("--wait", "Wait until all requests end; exit with 1 if one failed")
    .addOption(timeoutOption())
    .option("--dry-run", "Validate the request without enqueueing it")
    .action((controller: string, names: readonly string[], flags: EnqueueFlags) =>
      runWithClient(flags, (asking) => enqueue(asking, [controller, ...names], flags), {
        options: Object.fromEntries(
          names.map((name, index) => [`/items/${index}/name`, JSON.stringify(name)]),
        ),
      }),
    );
}

function addGet(reconcile: Command): void {
  withServer(
    reconcile
      .command("get")
      .description("Show the status of requests")
      .argument("<request...>", "Request IDs, as printed by reconcile enqueue"),
  ).action((ids: readonly string[], flags: ClientFlags) =>
    runWithClient(flags, async ({ client }) => {
      showStates(flags, await Promise.all(ids.map((id) => client.reconciles.get(id))), ids);
    }),
  );
}

function addList(reconcile: Command): void {
  withKeyFilters(
    withPages(withClient(reconcile.command("list").description("List active requests by object"))),
  ).action((flags: KeyFlags) =>
    runWithClient(
      flags,
      ({ client, cluster }) =>
        showPages(flags, client.reconciles.list(keyQueryOf(flags, cluster)), {
          nameOf: ({ key }) => key,
          table: keyRows,
          empty: "no active requests",
        }),
      KEY_OPTIONS,
    ),
  );
}

function addCancel(reconcile: Command): void {
  withAction(
    withServer(
      reconcile
        .command("cancel")
        .description("Cancel one request; other requests for the object continue")
        .argument("<request>", "Request ID, as printed by reconcile enqueue"),
    ),
  ).action((id: string, flags: ActionFlags) =>
    runWithClient(flags, async ({ client }) => {
      const { action, write } = actionOf(flags);
      if (flags.dryRun === true) {
        showStates(flags, [await client.reconciles.get(id)], [id]);
        return printNote("dry run; showing the current state, nothing was cancelled");
      }
      const answer = await client.reconciles.cancel(id, action, write);
      print(flags.output, { document: answer, names: [answer.id], table: () => answer.result });
    }),
  );
}

async function enqueue(
  { client, cluster }: Asking,
  words: readonly [string, ...string[]],
  flags: EnqueueFlags,
): Promise<void> {
  const { output, reason, class: requestClass, idempotencyKey } = flags;
  const targets = targetsOf(words, { cluster, namespace: flags.namespace });
  const bodies = targets.map((target) => ({
    ...target,
    ...defined({ reason, class: requestClass }),
  }));
  const names = targets.map(({ name }) => name);
  if (flags.dryRun === true) {
    for (const target of targets) await checkTarget(client, target);
    print(output, {
      document: { items: bodies },
      items: bodies,
      names,
      table: () => `would enqueue ${names.length} ${names.length === 1 ? "object" : "objects"}`,
    });
    return;
  }
  const write = idempotencyKey === undefined ? {} : { idempotencyKey };
  const [only] = bodies;
  if (bodies.length === 1 && only !== undefined) {
    const accepted = await client.reconciles.create(only, write);
    if (flags.wait === true) return await waitForAll({ client }, [accepted.id], flags);
    return print(output, { document: accepted, names: [accepted.id], table: () => accepted.id });
  }
  const answer = await client.reconciles.createMany(bodies, write);
  const ids = answer.items.flatMap((item) => ("id" in item ? [item.id] : []));
  for (const [index, item] of answer.items.entries()) {
    if ("error" in item) printNote(`konverge: ${names[index]}: ${oneLine(item.error.detail)}`);
  }
  const [refused] = answer.items.flatMap((item) => ("error" in item ? [item.error] : []));
  if (refused !== undefined) process.exitCode = exitCodeOf(refused);
  if (flags.wait === true && ids.length > 0) return await waitForAll({ client }, ids, flags);
  print(output, {
    document: answer,
    items: answer.items,
    names: ids,
    table: () => ids.join("\n"),
    empty: "no request was accepted",
  });
}

/** Bounded, so that a thousand waits do not take a thousand connections. */
const WAITS_AT_ONCE = 20;

async function waitForAll(
  { client }: Pick<Asking, "client">,
  ids: readonly string[],
  flags: EnqueueFlags,
): Promise<void> {
  const states: ReconcileState[] = [];
  const left = [...ids.entries()];
  const endMs = performance.now() + flags.timeout;
  if (process.stderr.isTTY)
    printNote(`waiting for ${ids.length === 1 ? ids[0] : `${ids.length} requests`}`);
  let late: ProblemError | undefined;
  const run = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const [index, id] = next;
      try {
        const timeoutMs = Math.max(0, endMs - performance.now());
        states[index] = await client.reconciles.wait(id, { timeoutMs });
      } catch (error) {
        if (!(error instanceof ProblemError) || error.code !== "wait_timeout") throw error;
        late = error;
        states[index] = await client.reconciles.get(id);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(WAITS_AT_ONCE, ids.length) }, run));
  showStates(flags, states, ids);
  // The most severe result decides: failed, then not found, then timed out.
  const ended = states.filter(({ phase }) => phase === "finished");
  const failed = ended.filter(({ outcome }) => !handlerSucceeded(outcome));
  if (late !== undefined) printNote(`konverge: ${oneLine(late.message)}`);
  if (failed.some(({ outcome }) => outcome !== "gone")) process.exitCode = 1;
  else if (failed.length > 0) process.exitCode = exitCodeOf({ code: "not_found", status: 404 });
  else if (late !== undefined) process.exitCode = exitCodeOf(late);
}

function showStates(
  { output }: ClientFlags,
  states: readonly ReconcileState[],
  ids: readonly string[],
): void {
  print(output, {
    document: states.length === 1 ? states[0] : { items: states },
    items: states,
    names: ids,
    table: () => stateRows(states),
  });
  for (const note of states.flatMap(stateNotes)) printNote(`konverge: ${oneLine(note)}`);
}

/** Rejects a target that the server would reject. */
async function checkTarget(
  client: Asking["client"],
  { cluster, controller, namespace }: Target,
): Promise<void> {
  const known = await findController({ client, cluster }, controller);
  const isNamespaced = known.scope === "Namespaced";
  if (isNamespaced === (namespace !== undefined)) return;
  const detail = isNamespaced
    ? `is required, because ${known.kind} is namespaced`
    : `is not allowed, because ${known.kind} is cluster-scoped`;
  const issues = [{ pointer: "/namespace", detail }];
  throw new KonvergeError("invalid_request", detail, { issues });
}
