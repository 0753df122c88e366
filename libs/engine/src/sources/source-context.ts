import { defined, findNameIssue, nextDelay, sleepMs, type BackoffPolicy } from "@konverge/core";
import type { NamespacedName } from "@konverge/kube";
import type { SourceStore, WorkQueue } from "@konverge/queue";
import type { Controller } from "../define/define-controller.ts";
import { reconciledKey } from "../define/reconciled-key.ts";
import type { EventSource, RequestedObjects } from "../define/event-source.ts";
import type { SourceReporter } from "./source-reporter.ts";

/** The dependencies of a running source. */
export interface SourceContext<Source extends EventSource = EventSource> {
  readonly source: Source;
  readonly controller: Controller;
  readonly queue: WorkQueue;
  readonly store: SourceStore;
  readonly reporter: SourceReporter;
  /** Aborted when the leadership ends, or Redis may have lost data. */
  readonly signal: AbortSignal;
}

/** Thrown if another process has claimed the source. */
export class SourceFencedError extends Error {}

const RETRY: BackoffPolicy = {
  baseMs: 1_000,
  factor: 2,
  capMs: 60_000,
  steps: Infinity,
  jitter: { kind: "equal" },
};

/** Waits before retry number `failures` of a source, from 1 s to 1 min. */
export async function backOff(failures: number, signal: AbortSignal): Promise<void> {
  const step = nextDelay(RETRY, Math.max(0, failures - 1));
  await sleepMs(step.kind === "wait" ? step.afterMs : RETRY.capMs, signal);
}

/** Returns the objects that user code has named. @throws TypeError for an invalid name */
export function namesOf(
  { for: reconciled }: Pick<Controller, "for">,
  objects: RequestedObjects,
): readonly NamespacedName[] {
  if (objects === null || objects === undefined) return [];
  const names = (Array.isArray(objects) ? objects : [objects]) as readonly unknown[];
  return names.map((given) => {
    const name = (given ?? {}) as Partial<NamespacedName>;
    const issue = findNameIssue(reconciled, name);
    if (issue === undefined) return name as NamespacedName;
    const form = reconciled.scope === "Cluster" ? "{ name }" : "{ namespace, name }";
    throw new TypeError(`${issue.field} ${issue.detail}; return ${form}, or null for no object`);
  });
}

export interface SourceRequest {
  readonly reason?: string;
  readonly traceparent?: string | undefined;
}

/** Submits a request. Resolves when Redis has accepted or first refused it. */
export function submit(
  { controller, queue, source }: Pick<SourceContext, "controller" | "queue" | "source">,
  name: NamespacedName,
  { reason, traceparent }: SourceRequest = {},
): Promise<void> {
  const key = reconciledKey(controller, queue.cluster, name);
  const by = `${source.kind} ${source.name}`;
  return queue.submit(key, { kind: "signal", by, ...defined({ reason, traceparent }) });
}

/** Resolves when Redis has accepted all requests that were submitted before. @throws the reason of the signal */
export async function accepted({
  queue,
  signal,
}: Pick<SourceContext, "queue" | "signal">): Promise<void> {
  await queue.accepted(signal);
  // A queue that closes drops its requests.
  signal.throwIfAborted();
}
