import type { ActOnRuns, ActOnRunsResponse } from "@konverge/contracts";
import { defined, isKonvergeError, KonvergeError } from "@konverge/core";
import { formatRunId, type RunRef } from "@konverge/workflow";
import type { RouteInput } from "../http/route.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { checkEncodable, filterOf, placeIn, visibleWorkflows } from "./find-run.ts";
import { formatCursor, parseCursor } from "./run-view.ts";
import { signalIdOf } from "./signal-id.ts";

/** Time after which a response with a cursor is sent, in ms. */
const BUDGET_MS = 10_000;

/** Acts on all runs in the scope of the caller that match. A dry run only counts them. */
export async function actOnRuns(
  access: QueueAccess,
  body: ActOnRuns,
  {
    caller,
    context,
    audit,
  }: Pick<RouteInput<string, unknown, unknown>, "caller" | "context" | "audit">,
): Promise<ActOnRunsResponse> {
  const { cluster, action, filter: query, dryRun, expect, cursor, by, reason } = body;
  const { workflow } = query;
  const { names, workflows, announced, codecs } = await visibleWorkflows(access, caller, {
    cluster,
    workflow,
  });
  const filter = filterOf(query);
  for (const name of names) {
    const value = body.signal?.payload;
    checkEncodable(access, codecs, { workflow: name, value, pointer: "/signal/payload" });
  }
  if (dryRun || expect !== undefined) {
    const { matched, next } = await workflows.countMatching(names, {
      action,
      filter,
      budgetMs: BUDGET_MS,
      ...(cursor === undefined ? {} : { from: parseCursor(cursor) }),
    });
    if (expect !== undefined && next !== undefined) throw tooMany();
    if (expect !== undefined && expect !== matched) throw unexpected(matched, expect);
    if (dryRun) {
      const counts = { dryRun, matched, changed: 0, unchanged: 0, failed: 0, failures: [] };
      return { ...counts, ...(next === undefined ? {} : { next: formatCursor(next) }) };
    }
  }
  const place = workflow === undefined ? { cluster } : placeIn(cluster, workflow);
  const noteOf = (range: string) => {
    return {
      action: `run.${action}` as const,
      ...place,
      filter: `${textOf(body)}: ${range}`,
      reason,
    };
  };
  const record = (range: string, count?: number) =>
    audit({ ...noteOf(range), ...defined({ count }) }, by);
  const key = context.req.header("idempotency-key");
  const { signal: given } = body;
  const signal = given && {
    name: given.name,
    ...defined({ payload: given.payload, id: signalIdOf(caller.id, key, given) }),
  };
  const request = {
    action,
    filter,
    by,
    reason,
    // Written at once: this process may be killed before the end.
    onBegin: () => access.audit.write({ ...noteOf("begun"), by, via: caller.via }),
    budgetMs: BUDGET_MS,
    fromFailed: body.fromFailed,
    versions: announced,
    ...defined({ signal }),
    ...(cursor === undefined ? {} : { from: parseCursor(cursor) }),
  };
  const result = await workflows.actOnMatching(names, request).catch((error: unknown) => {
    // An outage of Redis may have ended it after some runs.
    if (!isKonvergeError(error) || error.code !== "invalid_request") record("interrupted");
    throw error;
  });
  const { changed, failures, next, range, ...counts } = result;
  if (range !== undefined) record(rangeText(cluster, range), changed);
  return {
    dryRun,
    changed,
    ...counts,
    failures: failures.map(({ code, message, ...ref }) => ({
      id: formatRunId(ref, cluster),
      code,
      message,
    })),
    ...(next === undefined ? {} : { next: formatCursor(next) }),
  };
}

function tooMany(): KonvergeError {
  const seconds = BUDGET_MS / 1_000;
  const detail = `counting the runs takes longer than ${seconds} s with this filter; omit expect, or filter by workflow, status or time only`;
  return new KonvergeError("invalid_request", detail, {
    issues: [{ pointer: "/expect", detail }],
  });
}

function unexpected(matched: number, expected: number): KonvergeError {
  const detail = `${matched} runs match, but ${expected} were expected; count them again with dryRun`;
  return new KonvergeError("count_mismatch", detail, {
    issues: [{ pointer: "/expect", detail }],
  });
}

/** The filter with the name of the signal. */
function textOf({ filter, signal }: ActOnRuns): string {
  const { workflow: _workflow, ...conditions } = filter;
  const pairs = Object.entries(conditions).map(([name, value]) => `${name}=${String(value)}`);
  const runs = pairs.length === 0 ? "all runs" : `runs with ${pairs.join(" ")}`;
  return signal === undefined ? runs : `${signal.name} to ${runs}`;
}

/** The first and last run that were changed: all others were created in between. */
function rangeText(cluster: string, [newest, oldest]: readonly [RunRef, RunRef]): string {
  const [one, other] = [formatRunId(newest, cluster), formatRunId(oldest, cluster)];
  return one === other ? one : `${one} to ${other}, newest first`;
}
