import { defined, isJsonObject, resourceId, type CallVerb, type JsonValue } from "@konverge/core";
import type { ApiCall } from "../contract/api-call.ts";

interface CallEnd {
  readonly status: number;
  readonly reason?: string;
  readonly value?: JsonValue | undefined;
}

type Headers = Readonly<Record<string, string>>;

/** The report of one sent call to its observers. */
export interface CallReport {
  /** Adds the headers that an observer requests. */
  readonly withTrace: (headers: Headers) => Headers;
  readonly ended: (end: CallEnd) => void;
}

const WRITES: ReadonlySet<CallVerb> = new Set(["create", "update", "patch", "apply"]);

const UNOBSERVED: CallReport = { withTrace: (headers) => headers, ended: () => undefined };

/** Starts the clock of one sent call and reports its end to the scope's observers. */
export function startCallReport(
  {
    verb,
    method,
    ref,
    subresource,
    scope,
  }: Pick<ApiCall, "verb" | "method" | "ref" | "subresource" | "scope">,
  waitedMs: number,
): CallReport {
  const { observe, onSend, fieldManager } = scope;
  if (observe === undefined && onSend === undefined) return UNOBSERVED;
  const call = {
    verb,
    resource: ref === undefined ? "" : resourceId(ref),
    ...defined({ subresource }),
    ...(ref?.namespace === undefined ? {} : { namespace: ref.namespace }),
    ...(ref?.name === undefined ? {} : { name: ref.name }),
    waitedMs,
  };
  const observer = onSend?.({ ...call, method });
  const startedAtMs = Date.now();
  const begunAtMs = performance.now();
  return {
    withTrace: (headers) =>
      observer === undefined ? headers : { ...headers, ...observer.headers },
    ended({ status, reason, value }) {
      const resourceVersion = versionOf(value);
      const record = {
        ...call,
        status,
        ...(reason === undefined || reason === "" ? {} : { reason }),
        startedAtMs,
        durationMs: performance.now() - begunAtMs,
        ...defined({ resourceVersion }),
        ...(fieldManager === undefined || !WRITES.has(verb) ? {} : { fieldManager }),
      };
      observer?.ended(record);
      observe?.(record);
    },
  };
}

function versionOf(value: JsonValue | undefined): string | undefined {
  const metadata = isJsonObject(value) ? value["metadata"] : undefined;
  const version = isJsonObject(metadata) ? metadata["resourceVersion"] : undefined;
  return typeof version === "string" && version !== "" ? version : undefined;
}
