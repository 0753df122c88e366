import type { AttemptRecord } from "@konverge/records";
import type { ObjectHistory } from "@konverge/contracts";
import { defined, createLocalGate, KonvergeError, parseKey, resourceId } from "@konverge/core";
import type { Command } from "commander";
import {
  attemptDetails,
  historyRows,
  keyDetails,
  numberOf,
  writeText,
} from "../text/attempt-text.ts";
import { blameFields, type Blame } from "../text/blame-fields.ts";
import { blameRows } from "../text/blame-text.ts";
import { findController } from "../ask/find-controller.ts";
import { KEY_OPTIONS, keyQueryOf, withKeyFilters, type KeyFlags } from "../ask/key-filters.ts";
import { print } from "../text/output.ts";
import { keyRows } from "../text/queue-text.ts";
import { groupHelp, runWithClient, withClient, type Asking } from "../ask/run-with-client.ts";
import {
  objectOf,
  withAttempt,
  withObject,
  type AttemptFlags,
  type ObjectFlags,
} from "../ask/object-target.ts";
import { showPages, withPages } from "../ask/show-pages.ts";
import { readVersion } from "../process/version.ts";
import { addObjectLogsCommand } from "./object-logs.ts";
import { addObjectPlanCommand } from "./object-plan.ts";
import { addObjectRecordingCommand, addObjectReplayCommand } from "./object-replay.ts";
import { runWatched, withWatch, type WatchFlags } from "../ask/show-watched.ts";

interface BlameFlags extends ObjectFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
}

const HELP = `
  konverge object list --phase backoff -n demo
  konverge object get node-pool blue -n demo
  konverge object history node-pool blue -n demo
  konverge object history node-pool blue -n demo --attempt 17
  konverge object logs node-pool blue -n demo --follow
  konverge object plan node-pool blue -n demo
  konverge object recording node-pool blue -n demo --save attempt.json
  konverge object replay node-pool blue -n demo --config konverge.config.ts
  konverge object replay --file attempt.json --config konverge.config.ts
  konverge object diff node-pool blue -n demo
  konverge object blame node-pool blue -n demo`;

export function addObjectCommand(program: Command): void {
  const object = program
    .command("object")
    .description("Show the state, history and field owners of objects")
    .addHelpText("afterAll", groupHelp(HELP));
  addList(object);
  addGet(object);
  addHistory(object);
  addObjectLogsCommand(object);
  addObjectPlanCommand(object);
  addObjectRecordingCommand(object);
  addObjectReplayCommand(object);
  addDiff(object);
  addBlame(object);
}

function addList(object: Command): void {
  withKeyFilters(
    withPages(
      withClient(object.command("list").description("List objects by phase, namespace and name")),
    ),
  ).action((flags: KeyFlags) =>
    runWithClient(
      flags,
      ({ client, cluster }) =>
        showPages(flags, client.objects.list(keyQueryOf(flags, cluster)), {
          nameOf: ({ key }) => key,
          table: keyRows,
          empty: "no objects found",
        }),
      KEY_OPTIONS,
    ),
  );
}

function addGet(object: Command): void {
  withWatch(withObject(object.command("get").description("Show the state of one object"))).action(
    (controller: string, name: string | undefined, flags: ObjectFlags & WatchFlags) =>
      runWatched(flags, async (asking) => {
        const history = await read(asking, controller, name, flags);
        return {
          document: history,
          names: [history.key],
          table: () => keyDetails(history),
        };
      }),
  );
}

function addHistory(object: Command): void {
  withAttempt(
    withObject(
      object
        .command("history")
        .description("Show the latest attempts of an object, or one in detail"),
    ),
    "Attempt number, as printed by object history",
  ).action((controller: string, name: string | undefined, flags: AttemptFlags) =>
    runWithClient(flags, async (asking) => {
      const history = await read(asking, controller, name, flags);
      const one = flags.attempt === undefined ? undefined : attemptOf(history, flags.attempt);
      print(flags.output, {
        document: one ?? { items: history.attempts },
        items: one === undefined ? history.attempts : [one],
        names: (one === undefined ? history.attempts : [one]).map(({ id }) => id),
        table: () => (one === undefined ? historyRows(history.attempts) : attemptDetails(one)),
        empty: "no attempts recorded",
      });
    }),
  );
}

function addDiff(object: Command): void {
  withAttempt(
    withObject(
      object.command("diff").description("Show the changes of an attempt, field by field"),
    ),
    "Attempt number (default: the last attempt that wrote)",
  ).action((controller: string, name: string | undefined, flags: AttemptFlags) =>
    runWithClient(flags, async (asking) => {
      const history = await read(asking, controller, name, flags);
      const attempt =
        flags.attempt === undefined
          ? history.attempts.find(({ writes }) => writes.length > 0)
          : attemptOf(history, flags.attempt);
      const writes = attempt?.writes ?? [];
      print(flags.output, {
        document: { attempt: attempt?.id, startedAt: attempt?.startedAt, writes },
        items: writes,
        names: writes.map(({ resource, name: written }) => `${resource}/${written}`),
        table: () =>
          attempt === undefined
            ? ""
            : [`attempt ${numberOf(attempt)}, ${attempt.startedAt}`, ...writes.map(writeText)].join(
                "\n",
              ),
        empty: "no recorded attempt wrote anything",
      });
    }),
  );
}

function addBlame(object: Command): void {
  withObject(
    object.command("blame").description("Show field owners and the attempts that wrote the fields"),
  )
    .option(
      "--kubeconfig <file>",
      "Kubeconfig (default: KONVERGE_KUBECONFIG, or the same as kubectl)",
    )
    .option(
      "--context <name>",
      "Kubeconfig context (default: KONVERGE_CONTEXT, or the current context)",
    )
    .addHelpText("after", "\nThe object is read from the API server with your kubeconfig.")
    .action((controller: string, name: string | undefined, flags: BlameFlags) =>
      runWithClient(flags, async (asking) => {
        const items = await blame(asking, controller, name, flags);
        print(flags.output, {
          document: { items },
          items,
          names: items.map(({ path }) => path),
          table: () => blameRows(items),
          empty: "the object has no field managers",
        });
      }),
    );
}

function read(
  { client, cluster }: Asking,
  controller: string,
  name: string | undefined,
  { namespace }: ObjectFlags,
): Promise<ObjectHistory> {
  return client.objects.get(objectOf({ controller, name, namespace, cluster }));
}

function attemptOf({ key, attempts }: ObjectHistory, number: number): AttemptRecord {
  const found = attempts.find(({ epoch }) => epoch === number);
  if (found !== undefined) return found;
  const kept = attempts.map(numberOf);
  const range = kept.length === 0 ? "none" : `${kept.at(-1)} to ${kept[0]}`;
  throw new KonvergeError("not_found", `${key} has no attempt ${number}; available: ${range}`);
}

async function blame(
  asking: Asking,
  controller: string,
  typed: string | undefined,
  flags: BlameFlags,
): Promise<Blame[]> {
  const { settings, client } = asking;
  const history = await read(asking, controller, typed, flags);
  const key = parseKey(history.key);
  const type = await findController({ client, cluster: key.cluster }, key.controller);
  const { kubeconfig = settings.kubeconfig, context = settings.context } = flags;
  const { createKubeClient, listFieldOwners, loadKubeCredentials } = await import("@konverge/kube");
  const kube = createKubeClient({
    credentials: loadKubeCredentials({
      ...defined({ kubeconfigPath: kubeconfig, context }),
    }),
    gate: createLocalGate({ ratePerSecond: 50, burst: 50 }),
    userAgent: `konverge-cli/${readVersion()}`,
  });
  try {
    const { namespace, name } = key;
    const object = await kube.get(type, {
      name,
      ...defined({ namespace }),
    });
    const target = {
      controller: key.controller,
      resource: resourceId(key),
      namespace,
      name,
    };
    const owners = listFieldOwners(object, { sensitive: kube.isSensitive(type) });
    return blameFields(owners, history.attempts, target);
  } finally {
    await kube.close();
  }
}
