import type { BulkRunAction, Client, WriteOptions } from "@konverge/client";
import type { ActOnRunsResponse } from "@konverge/contracts";
import { defined, KonvergeError } from "@konverge/core";
import type { Command } from "commander";
import { print, printNote } from "../text/output.ts";
import { bulkText } from "../text/run-text.ts";
import { confirm } from "./confirm.ts";
import { runFilterOf, withRunFilter, type RunFilterFlags } from "./run-filter.ts";
import {
  actionOf,
  withAction,
  withClient,
  type ActionFlags,
  type Asking,
} from "./run-with-client.ts";
import { RUN_ID, RUN_OPTIONS } from "./show-run.ts";

/** The flags of an action on one run, or on all that match. */
export interface BulkFlags extends ActionFlags, Omit<RunFilterFlags, "by"> {
  readonly workflow?: string;
  readonly startedBy?: string;
  readonly all?: boolean;
  readonly yes?: boolean;
  readonly expect?: string;
}

/** The options behind the fields of a filter. */
export const BULK_OPTIONS = {
  options: {
    ...RUN_OPTIONS.options,
    ...Object.fromEntries(
      Object.entries(RUN_OPTIONS.options).map(([pointer, option]) => [`/filter${pointer}`, option]),
    ),
    "/filter/workflow": "--workflow",
    "/filter/by": "--started-by",
    "/expect": "--expect",
  },
} as const;

/** Adds the run, and the options to act on all that match instead. */
export function withRuns(command: Command): Command {
  const run = command.argument("[run]", `${RUN_ID} (default: all that match)`);
  return withBulkOptions(withAction(withClient(run)));
}

/** Adds the filters of an action on several runs, and its confirmation. */
export function withBulkOptions(command: Command): Command {
  return withRunFilter(command, "--started-by")
    .option("--workflow <name>", "Workflow name")
    .option("--all", "All runs to which the action applies")
    .option("--yes", "Skip the confirmation")
    .option("--expect <count>", "Required number of matching runs");
}

export interface BulkOptions {
  readonly action: BulkRunAction["action"];
  /** Past participle, for the summary. */
  readonly done: string;
  readonly flags: BulkFlags;
  /** Further fields of the request. */
  readonly more?: Pick<BulkRunAction, "fromFailed" | "signal">;
}

/** Counts the runs that match, asks the user, acts on them and prints the result. */
export async function actOnRuns(
  { client, cluster }: Asking,
  { action, done, flags, more }: BulkOptions,
): Promise<void> {
  const { all = false, yes = false, output } = flags;
  const filter = filterOf(flags);
  checkNarrowed(isFiltered(flags), all);
  const { action: author, write } = actionOf(flags);
  const request = { action, cluster, filter, ...(all ? { all } : {}), ...more, ...author };
  const { pages, total: preview } = await countAll(client, request);
  const { matched } = preview;
  const what = matched === 1 ? "1 run" : `${matched} runs`;
  if (flags.dryRun === true) {
    print(output, { document: preview, names: [], table: () => `${what} would be ${done}` });
    return printNote(`dry run; nothing was ${done}`);
  }
  let expect = flags.expect === undefined ? undefined : Number(flags.expect);
  if (!yes && matched > 0) {
    await confirm({ what: `${action} ${what}`, by: `run ${action}` });
    // The number that the user has confirmed. The API counts no longer than one request.
    if (pages === 1) expect ??= matched;
  }
  const { signal } = request;
  const result = await actOnAll(client, { ...request, ...defined({ expect }) }, write).catch(
    (error: unknown) => {
      const repeat = signal?.id === undefined ? undefined : `--id ${signal.id}`;
      if (repeat !== undefined)
        printNote(`repeat with ${repeat}; runs that have received the signal are skipped`);
      throw error;
    },
  );
  print(output, { document: result, names: [], table: () => bulkText(result, done) });
  if (result.failed > 0) process.exitCode = 1;
}

/** Repeats the count until no runs are left. */
async function countAll(
  client: Client,
  request: BulkRunAction,
): Promise<{ readonly pages: number; readonly total: ActOnRunsResponse }> {
  const counting = { ...request, dryRun: true };
  let { next, ...total } = await client.runs.act(counting);
  let pages = 1;
  for (; next !== undefined; pages += 1) {
    printNote(`${total.matched} counted so far`);
    const page = await client.runs.act({ ...counting, cursor: next });
    total = { ...total, matched: total.matched + page.matched };
    ({ next } = page);
  }
  return { pages, total };
}

/** Repeats the request until no runs are left. */
async function actOnAll(
  client: Client,
  first: BulkRunAction,
  write: WriteOptions,
): Promise<ActOnRunsResponse> {
  let { next, ...total } = await client.runs.act(first, write);
  const { expect: _expect, ...request } = first;
  while (next !== undefined) {
    printNote(`${total.changed} changed so far`);
    const { next: following, ...page } = await client.runs.act({ ...request, cursor: next });
    total = {
      dryRun: false,
      matched: total.matched + page.matched,
      changed: total.changed + page.changed,
      unchanged: total.unchanged + page.unchanged,
      failed: total.failed + page.failed,
      failures: [...total.failures, ...page.failures],
    };
    next = following;
  }
  return total;
}

/** Rejects filters together with a run, because they would have no effect. @throws KonvergeError `invalid_request` */
export function checkOneRun(flags: Omit<BulkFlags, "reason">): void {
  const { all, yes, expect } = flags;
  const isPlain = [all, yes, expect, ...Object.values(filterOf(flags))].every(
    (each) => each === undefined,
  );
  if (isPlain) return;
  const detail = "a run cannot be combined with filters, --all, --yes or --expect; omit the run";
  throw new KonvergeError("invalid_request", detail);
}

/** Returns true if the flags select runs. */
export function isFiltered(flags: Omit<BulkFlags, "reason">): boolean {
  return Object.keys(filterOf(flags)).length > 0;
}

function filterOf(flags: Omit<BulkFlags, "reason">): BulkRunAction["filter"] & object {
  const { workflow, startedBy: by } = flags;
  return { ...defined({ workflow }), ...runFilterOf({ ...flags, by }) };
}

/** Requires `--all` to act on every run, so that a forgotten filter cannot. */
function checkNarrowed(isNarrowed: boolean, all: boolean): void {
  if (isNarrowed !== all) return;
  const fix = all
    ? "cannot be combined with other filters; omit one of them"
    : "is required without a run and without a filter";
  throw new KonvergeError("invalid_request", `--all: ${fix}`);
}
