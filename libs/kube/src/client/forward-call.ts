import { defined, isJsonObject, type JsonObject, type JsonValue } from "@konverge/core";
import type { ForwardAnswer, ForwardRequest } from "../contract/forward.ts";
import { noteApiError } from "../errors/api-exception.ts";
import { isOptimisticConflict } from "../errors/error-predicates.ts";
import { isKubeApiError, type ErrorRef, type KubeApiError } from "../errors/kube-api-error.ts";
import type { LostWrites } from "../mutate/lost-writes.ts";
import { hasConnection } from "../names/connections.ts";
import { parsePath } from "../names/resource-path.ts";
import { parseBody } from "../wire/parse-body.ts";
import type { HttpAnswer } from "../contract/http-answer.ts";
import { asDryRun } from "./dry-run.ts";
import { rawVerb } from "./raw-call.ts";
import type { ScopedCalls } from "./scoped-calls.ts";

/** Headers that the transport sets itself. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  "accept-encoding",
  "authorization",
  "connection",
  "content-length",
  "content-type",
  "host",
  "transfer-encoding",
  "user-agent",
]);

/** Methods whose requests name a field manager. */
const WRITES: ReadonlySet<string> = new Set(["POST", "PUT", "PATCH"]);

/**
 * Sends a request of another client library, and returns the response whatever its status. The request is sent as it is,
 * apart from the credentials, a missing field manager, and the dry run of the scope.
 * @throws as every call, except KubeApiError
 */
export async function forwardCall(
  calls: ScopedCalls,
  request: ForwardRequest,
  lostWrites: LostWrites,
): Promise<ForwardAnswer> {
  const { method, headers, signal } = request;
  const { subresource, ...place } = parsePath(request.path) ?? {};
  const isDryRun = calls.dryRun !== undefined;
  const { path, body } = isDryRun
    ? asDryRun({ ...request, subresource, body: request.body })
    : request;
  const ref = "resource" in place ? (place as ErrorRef) : undefined;
  const contentType = headerOf(headers, "content-type");
  const verb = rawVerb(method, ref, contentType ?? "");
  const content = body === undefined ? undefined : parseBody(body);
  const written = ref === undefined ? undefined : objectIn(method, content);
  const readVersion = versionOf(written);
  const isObjectWrite = WRITES.has(method) && ref !== undefined && !hasConnection(subresource);
  const state: { answer?: HttpAnswer; error?: KubeApiError } = {};
  const target = ref === undefined ? undefined : { ...ref, ...defined({ subresource }) };
  const sent = await calls
    .send(
      {
        verb,
        method,
        path: isObjectWrite ? withFieldManager(path, calls.fieldManagerFor(verb)) : path,
        headers: foreignHeaders(headers),
        anyContent: true,
        guarded: readVersion !== undefined,
        onAnswer: (answer) => (state.answer = answer),
        ...defined({ body, contentType, subresource, ref }),
      },
      signal,
    )
    .catch((error: unknown) => {
      if (state.answer === undefined || !isKubeApiError(error)) throw error;
      state.error = error;
      return undefined;
    });
  const answer: ForwardAnswer = {
    status: state.answer?.status ?? 0,
    headers: textHeaders(state.answer?.headers ?? {}),
    text: state.answer?.body ?? "",
    sent: content,
    value: sent?.value,
    error: state.error,
    target,
  };
  if (state.error !== undefined) noteApiError(answer.headers, state.error);
  if (target === undefined || isDryRun) return answer;
  if (written !== undefined && readVersion !== undefined && isOptimisticConflict(state.error)) {
    const conflict = lostWrites.noteConflict(target, written, readVersion);
    if (conflict !== undefined) calls.scope.onConflict?.(conflict);
  }
  if (isJsonObject(sent?.value)) lostWrites.noteObject(target, sent.value);
  return answer;
}

/** The object that a request writes, or its part in a merge patch. */
function objectIn(
  method: ForwardRequest["method"],
  content: JsonValue | undefined,
): JsonObject | undefined {
  if (method !== "PUT" && method !== "PATCH") return undefined;
  return isJsonObject(content) ? content : undefined;
}

function versionOf(object: JsonObject | undefined): string | undefined {
  const metadata = object?.["metadata"];
  const version = isJsonObject(metadata) ? metadata["resourceVersion"] : undefined;
  return typeof version === "string" && version !== "" ? version : undefined;
}

/** Without one, the API server takes the start of the user agent, which is the same for all controllers. */
function withFieldManager(path: string, fieldManager: string | undefined): string {
  if (fieldManager === undefined || /[?&]fieldManager=/.test(path)) return path;
  const separator = path.includes("?") ? "&" : "?";
  return `${path}${separator}fieldManager=${encodeURIComponent(fieldManager)}`;
}

function foreignHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers)
      .filter(([name]) => !OWN_HEADERS.has(name.toLowerCase()))
      .map(([name, value]) => [name.toLowerCase() === "accept" ? "Accept" : name, value]),
  );
}

function headerOf(headers: Readonly<Record<string, string>>, name: string): string | undefined {
  const found = Object.keys(headers).find((key) => key.toLowerCase() === name);
  return found === undefined ? undefined : headers[found];
}

function textHeaders(headers: HttpAnswer["headers"]): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => {
      if (value === undefined) return [];
      return [[name, typeof value === "string" ? value : value.join(", ")]];
    }),
  );
}
