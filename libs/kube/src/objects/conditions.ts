import { KonvergeError } from "@konverge/core";

/** One observed aspect of an object's state, as in `metav1.Condition`. */
export interface Condition {
  type: string;
  status: "True" | "False" | "Unknown";
  /** One CamelCase word for machines. */
  reason: string;
  message?: string;
  /** The observed generation. */
  observedGeneration?: number;
  /** When `status` last changed; RFC 3339. */
  lastTransitionTime?: string;
}

/** A condition in a draft, regardless of its declared type. */
interface StoredCondition {
  type: string;
  status: string;
  reason?: string | undefined;
  message?: string | undefined;
  observedGeneration?: number | undefined;
  lastTransitionTime?: string | undefined;
}

/** A draft whose status holds conditions; the status may still be absent. */
export interface WithConditions {
  status?: { conditions?: StoredCondition[] | undefined } | undefined;
}

const REASON = /^[A-Za-z](?:[A-Za-z0-9_,:]*[A-Za-z0-9_])?$/;
const STATUSES: ReadonlySet<string> = new Set(["True", "False", "Unknown"]);

/**
 * Sets a condition of a draft, like apimachinery's `SetStatusCondition`: the transition time moves only if `status`
 * changes, so setting an equal condition changes and writes nothing. Returns whether anything changed.
 * @throws KonvergeError `invalid_draft` for values that the API server would reject
 */
export function setCondition(
  draft: WithConditions,
  condition: Condition,
  now: () => Date = () => new Date(),
): boolean {
  checkCondition(condition);
  const status = (draft.status ??= {});
  const conditions = (status.conditions ??= []);
  const known = conditions.find(({ type }) => type === condition.type);
  const transition = condition.lastTransitionTime ?? toTime(now());
  if (known === undefined) {
    conditions.push({
      ...condition,
      message: condition.message ?? "",
      lastTransitionTime: transition,
    });
    return true;
  }
  let changed = false;
  if (known.status !== condition.status) {
    known.status = condition.status;
    known.lastTransitionTime = transition;
    changed = true;
  }
  const message = condition.message ?? "";
  if (known.reason !== condition.reason || known.message !== message) {
    known.reason = condition.reason;
    known.message = message;
    changed = true;
  }
  if (
    condition.observedGeneration !== undefined &&
    known.observedGeneration !== condition.observedGeneration
  ) {
    known.observedGeneration = condition.observedGeneration;
    changed = true;
  }
  return changed;
}

function checkCondition({ type, status, reason, message = "" }: Condition): void {
  const problem = (field: string, detail: string) =>
    new KonvergeError("invalid_draft", `condition "${type}": ${field} ${detail}`, {
      issues: [{ pointer: `/status/conditions/${field}`, detail }],
    });
  if (type === "") throw problem("type", "is empty; set a type, for example Ready");
  if (!STATUSES.has(status)) throw problem("status", `is "${status}"; use True, False or Unknown`);
  if (!REASON.test(reason) || reason.length > 1_024) {
    throw problem("reason", `is "${reason}"; use one CamelCase word of at most 1024 characters`);
  }
  if (message.length > 32_768)
    throw problem("message", "has more than 32768 characters; shorten it");
}

/** Whole seconds, the format of metav1.Time. */
function toTime(date: Date): string {
  return date.toISOString().replace(/\.\d+Z$/, "Z");
}
