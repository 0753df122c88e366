import type { CallVerb } from "@konverge/core";
import type { ErrorRef } from "../errors/kube-api-error.ts";
import type { RawRequest } from "../contract/kube-client.ts";

const RAW_VERBS: Readonly<Record<RawRequest["method"], CallVerb>> = {
  GET: "get",
  POST: "create",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};

/** What the gate and the records call a raw request. */
export function rawVerb(
  method: RawRequest["method"],
  about: ErrorRef | undefined,
  contentType: string,
): CallVerb {
  if (method === "PATCH" && contentType.startsWith("application/apply-patch")) return "apply";
  if (method === "GET" && about !== undefined && about.name === undefined) return "list";
  return RAW_VERBS[method];
}
