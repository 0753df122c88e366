import { readFileSync } from "node:fs";
import { resourceId, type ResourceType } from "@konverge/core";

/** A completed API server call. */
export interface ApiCall {
  /** Verb of the audit log: `get`, `list`, `create`, `update`, `patch` or `delete`. */
  readonly verb: string;
  /** `plural.group`, or only the plural name in the core group. */
  readonly resource: string;
  readonly subresource: string | undefined;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  /** HTTP status. */
  readonly code: number;
}

/** Filters combined with AND. */
export interface CallFilter {
  /** Verb of the audit log, such as `patch`. */
  readonly verb?: string;
  /** Kind of the object. */
  readonly type?: ResourceType;
  /** For example `status`; an empty string for the object itself. */
  readonly subresource?: string;
  /** Name of the object. */
  readonly name?: string;
  /** HTTP status. */
  readonly code?: number;
}

export interface CallLog {
  calls(filter?: CallFilter): readonly ApiCall[];
  /** Discards the calls so far. */
  clear(): void;
}

interface AuditEvent {
  readonly verb: string;
  readonly userAgent?: string;
  readonly objectRef?: {
    readonly resource: string;
    readonly apiGroup?: string;
    readonly subresource?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly responseStatus?: { readonly code?: number };
}

/** Calls of the worker itself. */
const HOUSEKEEPING = ["leases.coordination.k8s.io", "events", "events.events.k8s.io"];

/** Reads the audit log of the embedded API server, which contains completed calls. */
export function readCalls(auditLog: string, userAgent: string): CallLog {
  let cleared = 0;
  const read = () =>
    readFileSync(auditLog, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as AuditEvent);
  return {
    calls(filter = {}) {
      return read()
        .slice(cleared)
        .filter((event) => event.userAgent?.startsWith(userAgent) === true)
        .flatMap((event) => toCall(event) ?? [])
        .filter((call) => call.verb !== "watch" && !HOUSEKEEPING.includes(call.resource))
        .filter((call) => matches(call, filter));
    },
    clear() {
      cleared = read().length;
    },
  };
}

function toCall({ verb, objectRef, responseStatus }: AuditEvent): ApiCall | undefined {
  if (objectRef === undefined) return undefined;
  const { resource, apiGroup, subresource, namespace, name } = objectRef;
  return {
    verb,
    resource: apiGroup === undefined ? resource : `${resource}.${apiGroup}`,
    subresource,
    namespace,
    name,
    code: responseStatus?.code ?? 0,
  };
}

function matches(call: ApiCall, { verb, type, subresource, name, code }: CallFilter): boolean {
  return (
    (verb === undefined || call.verb === verb) &&
    (type === undefined || call.resource === resourceId(type)) &&
    (subresource === undefined || (call.subresource ?? "") === subresource) &&
    (name === undefined || call.name === name) &&
    (code === undefined || call.code === code)
  );
}
