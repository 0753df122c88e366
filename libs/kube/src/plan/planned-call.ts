import {
  formatApiVersion,
  isJsonObject,
  parseJson,
  type JsonObject,
  type JsonValue,
  shortName,
} from "@konverge/core";
import type { PlannedCall } from "../contract/call-plan.ts";
import type { ErrorRef } from "../errors/kube-api-error.ts";
import { isDryRun } from "../names/is-dry-run.ts";
import { parsePath } from "../names/resource-path.ts";

/** The target of a call, by its path. */
export type Place = ErrorRef & { readonly subresource?: string };

/** The target of a call on one object. */
export type ObjectPlace = Place & { readonly name: string };

export function placeOf({ path }: PlannedCall): Place | undefined {
  return parsePath(path);
}

export function isNamed(place: Place): place is ObjectPlace {
  return place.name !== undefined && place.name !== "";
}

export function apiVersionOf({ group, version }: Place): string {
  return formatApiVersion(group, version);
}

/** For messages, for example `pools.demo.dev prod/blue`. */
export function labelOf({ group, resource, namespace, name = "" }: Place): string {
  const type = group === "" ? resource : `${resource}.${group}`;
  return `${type} ${shortName({ namespace, name })}`;
}

export function queryOf(path: string): URLSearchParams {
  return new URLSearchParams(path.split("?", 2)[1] ?? "");
}

/** The path without its query. */
export function pathOnly(path: string): string {
  return path.split("?", 1)[0] ?? "";
}

/** Undefined unless the body is a JSON object. */
export function bodyOf(call: PlannedCall): JsonObject | undefined {
  const value = jsonOf(call);
  return isJsonObject(value) ? value : undefined;
}

/** Undefined without a body, and for one in another format, such as YAML. */
export function jsonOf({ body }: PlannedCall): JsonValue | undefined {
  try {
    return body === undefined ? undefined : parseJson(body);
  } catch {
    return undefined;
  }
}

/** True for a write that the caller sends as a dry run: it has no effect, not even in the plan. */
export function isTrial(call: PlannedCall): boolean {
  const { method, path } = call;
  return isDryRun({ method, path, body: bodyOf(call) });
}

/** The write as a dry run. The query shows it in the audit log, even where the server reads the body. */
export function dry<Call extends PlannedCall>(call: Call): Call {
  if (call.method === "GET") return call;
  const { path, method, body } = call;
  const separator = path.includes("?") ? "&" : "?";
  const given = queryOf(path).has("dryRun");
  const options = method === "DELETE" && body !== undefined ? bodyOf(call) : undefined;
  return {
    ...call,
    path: given ? path : `${path}${separator}dryRun=All`,
    ...(options === undefined ? {} : { body: JSON.stringify({ ...options, dryRun: ["All"] }) }),
  };
}
