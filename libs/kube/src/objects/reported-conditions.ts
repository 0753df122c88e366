import { isJsonObject, type ApiObject, type JsonObject, type JsonValue } from "@konverge/core";

/** A condition written by any controller: only type and status are reliable. */
export interface ReportedCondition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly observedGeneration?: number;
  readonly lastTransitionTime?: string;
}

/** Returns the status of an object; empty if there is none. */
export function statusOf(object: ApiObject): JsonObject {
  return objectAt(object as unknown as JsonObject, "status");
}

export function specOf(object: ApiObject): JsonObject {
  return objectAt(object as unknown as JsonObject, "spec");
}

export function objectAt(parent: JsonObject, field: string): JsonObject {
  const value = parent[field];
  return isJsonObject(value) ? value : {};
}

/** Returns the first condition of the type. */
export function findCondition(object: ApiObject, type: string): ReportedCondition | undefined {
  const { conditions } = statusOf(object);
  if (!Array.isArray(conditions)) return undefined;
  const found = conditions.find(
    (condition): condition is JsonObject => isJsonObject(condition) && condition["type"] === type,
  );
  if (found === undefined) return undefined;
  const { reason, message, lastTransitionTime, observedGeneration } = found;
  return {
    type,
    status: textOf(found["status"]) ?? "Unknown",
    ...optional("reason", textOf(reason)),
    ...optional("message", textOf(message)),
    ...optional("lastTransitionTime", textOf(lastTransitionTime)),
    ...(typeof observedGeneration === "number" ? { observedGeneration } : {}),
  };
}

function textOf(value: JsonValue | undefined): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function optional<K extends string>(key: K, value: string | undefined): { [P in K]?: string } {
  return (value === undefined ? {} : { [key]: value }) as { [P in K]?: string };
}
