import { randomUUID } from "node:crypto";
import type { Client } from "@konverge/client";
import { defined, KonvergeError, RUN_ID_FORM } from "@konverge/core";
import type { Command } from "commander";
import {
  actOnRuns,
  BULK_OPTIONS,
  checkOneRun,
  isFiltered,
  withBulkOptions,
  type BulkFlags,
} from "../ask/act-on-runs.ts";
import { readJson } from "../ask/read-json.ts";
import { runWithClient, withClient, withIdempotencyKey } from "../ask/run-with-client.ts";
import { RUN_ID, showRun } from "../ask/show-run.ts";
import { systemUser } from "../ask/system-user.ts";
import { printNote } from "../text/output.ts";

interface SignalFlags extends Omit<BulkFlags, "reason"> {
  readonly payload?: string;
  readonly id?: string;
  readonly reason?: string;
}

const OPTIONS = {
  options: {
    ...BULK_OPTIONS.options,
    "/id": "--id",
    "/signal/id": "--id",
    "/signal/name": "<signal>",
    "/signal/payload": "--payload",
  },
};

/** Adds the command that sends a signal to one run, or to all runs that match. */
export function addSignalCommand(group: Command): void {
  const command = withIdempotencyKey(
    withClient(
      group
        .command("signal")
        .description("Send a signal to a run, even before its wait, or to all runs that match")
        .usage("[options] [run] <signal>")
        .argument("[run]", `${RUN_ID} (default: all that match)`)
        .argument("[signal]", "Signal name"),
    ),
  )
    .option("--payload <json>", "Payload as JSON; @file reads a file, @- standard input")
    .option("--id <id>", "Signal ID; a run receives each ID once (default: random)")
    .option("--by <name>", "Author (default: system user)")
    .option("--reason <text>", "Reason (required for several runs)")
    .option("--dry-run", "Print the effect without making the change");
  withBulkOptions(command).action(
    (first: string | undefined, second: string | undefined, flags: SignalFlags) =>
      runWithClient(
        flags,
        async (asking) => {
          const { payload, reason = "" } = flags;
          const [run, name = ""] = second === undefined ? [undefined, first] : [first, second];
          const isOnlyRun = run === undefined && RUN_ID_FORM.test(name) && !selectsRuns(flags);
          if (name === "" || isOnlyRun) refuse("<signal>", "is required");
          const given =
            payload === undefined ? {} : { payload: await readJson("--payload", payload) };
          if (run !== undefined) {
            const signal = { name, ...given, ...defined({ id: flags.id }) };
            return await sendOne(asking.client, { id: run, signal, flags });
          }
          if (reason === "") refuse("--reason", "is required without a run");
          await actOnRuns(asking, {
            action: "signal",
            done: "signalled",
            flags: { ...flags, reason },
            more: { signal: { name, ...given, id: flags.id ?? randomUUID() } },
          });
        },
        OPTIONS,
      ),
  );
}

async function sendOne(
  client: Client,
  {
    id,
    signal,
    flags,
  }: {
    readonly id: string;
    readonly signal: {
      readonly name: string;
      readonly payload?: unknown;
      readonly id?: string;
    };
    readonly flags: SignalFlags;
  },
): Promise<void> {
  const { by = systemUser(), reason, idempotencyKey, dryRun = false } = flags;
  checkOneRun(flags);
  if (reason !== undefined) refuse("--reason", "applies only without a run");
  if (dryRun) {
    showRun(flags, await client.runs.get(id));
    return printNote("dry run; showing the current state, nothing was sent");
  }
  const write = idempotencyKey === undefined ? {} : { idempotencyKey };
  showRun(flags, await client.runs.signal(id, { ...signal, by }, write));
}

function selectsRuns(flags: SignalFlags): boolean {
  return flags.all === true || isFiltered(flags);
}

/** @throws KonvergeError `invalid_request` */
function refuse(option: string, detail: string): never {
  throw new KonvergeError("invalid_request", `${option}: ${detail}`);
}
