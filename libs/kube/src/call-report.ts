import { isJsonObject, type CallVerb, type JsonValue } from "@konverge/core";
import type { ApiCall } from "./transport.ts";
import { resourceName } from "./resource-path.ts";

export interface CallEnd {
  readonly status: number;
  readonly reason?: string;
  readonly value?: JsonValue | undefined;
}

const WRITES: ReadonlySet<CallVerb> = new Set(["create", "update", "patch", "apply"]);

const nobodyListens = (): void => undefined;

/** Starts the clock of one sent call; what it returns tells the scope's observer how the call ended. */
export function startCallReport(
  { verb, ref, subresource, scope }: Pick<ApiCall, "verb" | "ref" | "subresource" | "scope">,
  waitedMs: number,
): (end: CallEnd) => void {
  const { observe, fieldManager } = scope;
  if (observe === undefined) return nobodyListens;
  const startedAtMs = Date.now();
  const begunAtMs = performance.now();
  return ({ status, reason, value }) => {
    const resourceVersion = versionOf(value);
    observe({
      verb,
      resource: ref === undefined ? "" : resourceName(ref),
      ...(subresource === undefined ? {} : { subresource }),
      ...(ref?.namespace === undefined ? {} : { namespace: ref.namespace }),
      ...(ref?.name === undefined ? {} : { name: ref.name }),
      status,
      ...(reason === undefined || reason === "" ? {} : { reason }),
      startedAtMs,
      durationMs: performance.now() - begunAtMs,
      waitedMs,
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      ...(fieldManager === undefined || !WRITES.has(verb) ? {} : { fieldManager }),
    });
  };
}

function versionOf(value: JsonValue | undefined): string | undefined {
  const metadata = isJsonObject(value) ? value["metadata"] : undefined;
  const version = isJsonObject(metadata) ? metadata["resourceVersion"] : undefined;
  return typeof version === "string" && version !== "" ? version : undefined;
}
