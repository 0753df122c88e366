import { KonvergeError, type ObjectKey } from "@konverge/core";

/** Identifies a run. */
export interface RunRef {
  readonly workflow: string;
  readonly id: string;
}

/** A DNS label (RFC 1123), as for controllers. */
const WORKFLOW_NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const MAX_ID = 500;
const RUN_ID = /^([^/]*)\/([^/]*)\/([^]+)$/;

/** Returns the queue of a workflow. A controller's name has no dot, so the two never collide. */
export function queueOfWorkflow(workflow: string): string {
  return `workflow.${workflow}`;
}

/** Returns the workflow of a queue; undefined for a controller's queue. */
export function workflowOfQueue(queue: string): string | undefined {
  const prefix = queueOfWorkflow("");
  return queue.startsWith(prefix) ? queue.slice(prefix.length) : undefined;
}

/** Returns the key of a run in its workflow's queue: requests are wake-ups, attempts are executions. */
export function keyOfRun({ workflow, id }: RunRef, cluster: string): ObjectKey {
  return {
    controller: queueOfWorkflow(workflow),
    cluster,
    resource: "runs",
    group: "workflow.konverge.dev",
    name: id,
  };
}

/** Formats a run of any cluster as `<workflow>/<cluster>/<id>`; the cluster is percent-encoded. */
export function formatRunId({ workflow, id }: RunRef, cluster: string): string {
  return `${workflow}/${encodeURIComponent(cluster)}/${id}`;
}

/** @throws KonvergeError `invalid_request` */
export function parseRunId(text: string): RunRef & { readonly cluster: string } {
  const [, workflow = "", encoded = "", id = ""] = RUN_ID.exec(text) ?? [];
  let cluster = "";
  try {
    cluster = decodeURIComponent(encoded);
  } catch {
    // Rejected below.
  }
  if (cluster !== "" && findWorkflowNameIssue(workflow) === undefined && isRunId(id)) {
    return { workflow, cluster, id };
  }
  throw new KonvergeError(
    "invalid_request",
    `"${text.slice(0, MAX_ID)}" is not a run id; use an id such as rollout/default/6f1b, as a start returns it`,
  );
}

/** Returns the issue of a workflow's name; undefined if it is valid. */
export function findWorkflowNameIssue(name: unknown): string | undefined {
  if (typeof name === "string" && WORKFLOW_NAME.test(name)) return undefined;
  return `name "${String(name)}" must be lower-case letters, digits and hyphens, at most 63`;
}

/** @throws KonvergeError `invalid_request` */
export function checkRunId(id: unknown): void {
  if (isRunId(id)) return;
  throw new KonvergeError(
    "invalid_request",
    `id of the run must be a string of 1 to ${MAX_ID} characters without spaces`,
  );
}

function isRunId(id: unknown): boolean {
  return typeof id === "string" && id.length > 0 && id.length <= MAX_ID && !/\s/.test(id);
}
