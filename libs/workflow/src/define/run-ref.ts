import { createHash } from "node:crypto";
import { KonvergeError, RUN_ID_FORM, type ObjectKey } from "@konverge/core";

/** Identifies a run. */
export interface RunRef {
  readonly workflow: string;
  readonly id: string;
}

/** A DNS label (RFC 1123), as for controllers. */
const WORKFLOW_NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
/** Longest id of a new run. Retries add a suffix. */
const MAX_ID = 500;
const MAX_KNOWN_ID = MAX_ID + 10;
/** Longest id of a child, so that its own children and retries are within the limit. */
const MAX_CHILD_ID = 400;
const KEPT_OF_LONG = 200;
/**
 * Characters of a step's name that are encoded in the id of its child: an id is an argument of commands and a part of lists that
 * are separated by spaces, and its dots separate the child from its parent.
 */
const UNFIT = /[\s\p{Cc}%.]/gu;
const SPREAD_STEPS = "steps";

/** Returns the queue of a workflow. A controller's name has no dot, so the two never collide. */
export function queueOfWorkflow(workflow: string): string {
  return `workflow.${workflow}`;
}

/** Ends the name under which a workflow's spread steps are stored. No workflow has it in its name. */
const SPREAD = "!";

/** Returns the name under which the spread steps of a workflow are stored: as runs, separate from its own. */
export function spreadOf(workflow: string): string {
  return workflow + SPREAD;
}

/** Returns the workflow of a run or spread step. */
export function workflowOf(stored: string): string {
  return stored.endsWith(SPREAD) ? stored.slice(0, -SPREAD.length) : stored;
}

/** Returns the workflow of a queue; undefined for a controller's queue. */
export function workflowOfQueue(queue: string): string | undefined {
  const prefix = queueOfWorkflow("");
  return queue.startsWith(prefix) ? queue.slice(prefix.length) : undefined;
}

/** Returns the key of a run, or of a spread step, in its workflow's queue: requests are wake-ups, attempts are executions. */
export function keyOfRun({ workflow: stored, id }: RunRef, cluster: string): ObjectKey {
  const workflow = workflowOf(stored);
  return {
    controller: queueOfWorkflow(workflow),
    cluster,
    resource: workflow === stored ? "runs" : SPREAD_STEPS,
    group: "workflow.konverge.dev",
    name: id,
  };
}

/** Returns the run, or the spread step, of a key in a workflow's queue; undefined for an object of a controller. */
export function runOfKey({ controller, resource, name: id }: ObjectKey): RunRef | undefined {
  const workflow = workflowOfQueue(controller);
  if (workflow === undefined) return undefined;
  return { workflow: resource === SPREAD_STEPS ? spreadOf(workflow) : workflow, id };
}

/** Formats a run of any cluster as `<workflow>/<cluster>/<id>`; the cluster is percent-encoded. */
export function formatRunId({ workflow, id }: RunRef, cluster: string): string {
  return `${workflow}/${encodeURIComponent(cluster)}/${id}`;
}

/** @throws KonvergeError `invalid_request` */
export function parseRunId(text: string): RunRef & { readonly cluster: string } {
  const [, workflow = "", encoded = "", id = ""] = RUN_ID_FORM.exec(text) ?? [];
  let cluster = "";
  try {
    cluster = decodeURIComponent(encoded);
  } catch {
    // Rejected below.
  }
  if (
    cluster !== "" &&
    findWorkflowNameIssue(workflow) === undefined &&
    isRunId(id, MAX_KNOWN_ID)
  ) {
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

/** Returns the id of a run in its round: what must differ between rounds is made of it. */
export function roundIdOf({
  id,
  round = 1,
}: {
  readonly id: string;
  readonly round?: number;
}): string {
  return round === 1 ? id : `${id}@${round}`;
}

/**
 * Returns the id of a child, made of the parent's and the step's name. What an id cannot have is percent-encoded, and a long
 * one ends with a hash instead.
 */
export function childIdOf(parent: string, step: string): string {
  const id = `${parent}.${step.replace(UNFIT, encodeUnfit)}`;
  if (id.length <= MAX_CHILD_ID && id.isWellFormed()) return id;
  const hash = createHash("sha256").update(`${parent}\n`).update(Buffer.from(step, "utf16le"));
  return `${id.slice(0, KEPT_OF_LONG).toWellFormed()}.${hash.digest("hex").slice(0, 32)}`;
}

function encodeUnfit(character: string): string {
  return character === "." ? "%2E" : encodeURIComponent(character);
}

/** @throws KonvergeError `invalid_request` */
export function checkRunId(id: unknown): void {
  if (isRunId(id)) return;
  throw new KonvergeError(
    "invalid_request",
    `id of the run must be a string of 1 to ${MAX_ID} characters without spaces and control characters`,
  );
}

/** Returns true for the id or the key of a run. */
export function isRunId(id: unknown, maxLength: number = MAX_ID): boolean {
  if (typeof id !== "string" || id.length === 0 || id.length > maxLength) return false;
  return !/[\s\p{Cc}]/u.test(id) && id.isWellFormed();
}
