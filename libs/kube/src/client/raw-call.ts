import { defined, KonvergeError, type CallVerb } from "@konverge/core";
import type { RawResponse, RawRequest } from "../contract/kube-client.ts";
import type { ErrorRef } from "../errors/kube-api-error.ts";
import { query } from "../names/query-string.ts";
import { parsePath } from "../names/resource-path.ts";
import { asDryRun } from "./dry-run.ts";
import type { ScopedCalls } from "./scoped-calls.ts";

export async function sendRaw(calls: ScopedCalls, request: RawRequest): Promise<RawResponse> {
  const { method, path, query: parameters = {}, body, signal } = request;
  const { contentType = "application/json" } = request;
  const place = parsePath(path);
  const verb = rawVerb(method, place, contentType);
  const [, inPath] = path.split("?", 2);
  const watch = parameters["watch"] ?? new URLSearchParams(inPath).get("watch") ?? "";
  if (method === "GET" && String(watch) !== "") {
    throw new KonvergeError(
      "invalid_request",
      "query.watch: raw() cannot stream; use watch() or a reflector",
    );
  }
  const { subresource, ...ref } = place ?? {};
  const added = query(parameters);
  const given = {
    method,
    path: path + (inPath === undefined ? added : added.replace("?", "&")),
    subresource,
    body: body === undefined ? undefined : JSON.stringify(body),
  };
  const sent = calls.dryRun === undefined ? given : asDryRun(given);
  const answer = await calls.send(
    {
      verb,
      method,
      path: sent.path,
      anyContent: true,
      ...(sent.body === undefined ? {} : { body: sent.body, contentType }),
      ...defined({ subresource }),
      ...(place === undefined ? {} : { ref: ref as ErrorRef }),
    },
    signal,
  );
  return { status: answer.status, body: answer.value ?? answer.text, headers: answer.headers };
}

const VERBS: Readonly<Record<RawRequest["method"], CallVerb>> = {
  GET: "get",
  POST: "create",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};

/** The verb of a raw request, for the gate and the records. */
export function rawVerb(
  method: RawRequest["method"],
  place: ErrorRef | undefined,
  contentType: string,
): CallVerb {
  if (method === "PATCH" && contentType.startsWith("application/apply-patch")) return "apply";
  if (method === "GET" && place !== undefined && place.name === undefined) return "list";
  return VERBS[method];
}
