import {
  parseLabels,
  type RunDetail,
  type RunFilterQuery,
  type RunList,
  type RunListQuery,
} from "@konverge/contracts";
import {
  defined,
  isEncoded,
  isKonvergeError,
  KonvergeError,
  NO_NAMESPACE,
  parseEncoded,
} from "@konverge/core";
import {
  formatRunId,
  parseRunId,
  queueOfWorkflow,
  type RunFilter,
  type RunRef,
  type Workflows,
} from "@konverge/workflow";
import { covers, demand, demandSome, type Caller } from "../access/caller.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { formatCursor, parseCursor, runDetail, runItem } from "./run-view.ts";

/** A run and the workflows of its cluster. */
export interface FoundRun {
  readonly cluster: string;
  readonly ref: RunRef;
  /** The run as the audit log names it. */
  readonly place: ReturnType<typeof placeIn> & { readonly name: string };
  readonly workflows: Workflows;
  /** The version of new runs, by workflow. */
  readonly announced: ReadonlyMap<string, number>;
  /** The name of the codec, by workflow. */
  readonly codecs: ReadonlyMap<string, string>;
}

/**
 * Checks that a value reaches Redis encoded if the workflow has a codec, and that a workflow without one gets no encoded value.
 * @throws KonvergeError `codec_missing`, `invalid_request`
 */
export function checkEncodable(
  { codec }: Pick<QueueAccess, "codec">,
  codecs: ReadonlyMap<string, string>,
  {
    workflow,
    value,
    pointer,
  }: { readonly workflow: string; readonly value: unknown; readonly pointer: string },
): void {
  const needed = codecs.get(workflow);
  const encoded = isEncoded(value) ? (parseEncoded(value)?.codec ?? "unknown") : undefined;
  if (value === undefined || needed === encoded || (encoded === undefined && needed === codec))
    return;
  if (encoded !== undefined) {
    const has = needed === undefined ? "has no codec" : `has codec "${needed}"`;
    const detail = `the value was encoded by codec "${encoded}", but workflow "${workflow}" ${has}`;
    throw new KonvergeError("invalid_request", detail, { issues: [{ pointer, detail }] });
  }
  if (needed === undefined) return;
  const detail = `workflow "${workflow}" encodes its values with codec "${needed}", which this API process does not have; set KONVERGE_CODEC for it, or send an encoded value`;
  throw new KonvergeError("codec_missing", detail, { issues: [{ pointer, detail }] });
}

/** Finds a run by its ID. @throws KonvergeError `not_found` or `forbidden` */
export async function findRun(access: QueueAccess, caller: Caller, id: string): Promise<FoundRun> {
  const { cluster, ...ref } = parseRunId(id);
  const place = placeIn(cluster, ref.workflow);
  demand(caller, place);
  return { cluster, ref, place: { ...place, name: ref.id }, ...(await access.runs(cluster)) };
}

/** @throws KonvergeError `not_found` */
export async function readRun({
  cluster,
  ref,
  workflows,
}: Pick<FoundRun, "cluster" | "ref" | "workflows">): Promise<RunDetail> {
  const run = await workflows.get(ref);
  if (run === undefined) {
    const text = formatRunId(ref, cluster);
    throw new KonvergeError("not_found", `run ${text} does not exist or was deleted`);
  }
  const [journal, unconsumedSignals, refusedSignals] = await Promise.all([
    workflows.journal(ref),
    workflows.unconsumedSignals(ref),
    workflows.refusedSignals(ref),
  ]);
  return runDetail(run, cluster, { ...journal, unconsumedSignals, refusedSignals });
}

export async function listRuns(
  access: QueueAccess,
  caller: Caller,
  { cluster, limit, cursor, ...query }: RunListQuery,
): Promise<RunList> {
  const { workflow } = query;
  const { workflows, names } = await visibleWorkflows(access, caller, { cluster, workflow });
  const page = await workflows.list(names, {
    limit,
    filter: filterOf(query),
    ...(cursor === undefined ? {} : { from: parseCursor(cursor) }),
  });
  const items = page.runs.map((run) => runItem(run, cluster));
  return { items, ...(page.next === undefined ? {} : { next: formatCursor(page.next) }) };
}

/** Returns the filter of a query. */
export function filterOf({
  workflow: _workflow,
  search,
  label,
  since,
  until,
  parent,
  ...exact
}: RunFilterQuery): RunFilter {
  return {
    ...(parent === undefined ? {} : { parent: parent === "none" ? parent : parseRunId(parent) }),
    ...defined({ ...exact, text: search }),
    ...(label === undefined ? {} : { labels: parseLabels(label) }),
    ...(since === undefined ? {} : { sinceMs: Date.parse(since) }),
    ...(until === undefined ? {} : { untilMs: Date.parse(until) }),
  };
}

/** Returns the workflow, or all in the scope of the caller. @throws KonvergeError `not_found` or `forbidden` */
export async function visibleWorkflows(
  access: QueueAccess,
  caller: Caller,
  { cluster, workflow }: { readonly cluster: string; readonly workflow: string | undefined },
): Promise<Omit<FoundRun, "cluster" | "ref" | "place"> & { readonly names: readonly string[] }> {
  if (workflow === undefined) demandSome(caller, { cluster });
  else demand(caller, placeIn(cluster, workflow));
  const runs = await access.runs(cluster);
  const { announced } = runs;
  if (workflow !== undefined && !announced.has(workflow)) {
    throw unknownWorkflow(caller, { cluster, workflow, announced });
  }
  const names =
    workflow === undefined
      ? [...announced.keys()].filter((name) => covers(caller.scope, placeIn(cluster, name)))
      : [workflow];
  return { ...runs, names };
}

/** The place of a workflow in scopes: the queue name as the controller, and no namespace. */
export function placeIn(cluster: string, workflow: string) {
  return { cluster, controller: queueOfWorkflow(workflow), namespace: NO_NAMESPACE };
}

/** The error lists the workflows in the scope of the caller. */
export function unknownWorkflow(
  { scope }: Caller,
  {
    cluster,
    workflow,
    announced,
  }: Pick<FoundRun, "cluster" | "announced"> & { readonly workflow: string },
): KonvergeError {
  const visible = [...announced.keys()].filter((name) => covers(scope, placeIn(cluster, name)));
  const known = visible.join(", ") || "none";
  const detail = `cluster "${cluster}" has no workflow "${workflow}"; known: ${known}`;
  return new KonvergeError("not_found", detail);
}

/** Reports a value that cannot be recorded as an error of the caller instead of a step. */
export async function fitting<T>(pointer: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isKonvergeError(error) || error.code !== "invalid_result") throw error;
    const issues = [{ pointer, detail: error.message }];
    throw new KonvergeError("invalid_request", error.message, { issues, cause: error });
  }
}
