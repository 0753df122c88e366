import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { formatApiVersion, parseJson, resourceId, type JsonObject } from "@konverge/core";
import { StatusError } from "../errors/status-error.ts";
import { makeTable, makeTableLines } from "../tables/make-table.ts";
import { makePartial, makePartialLine } from "../tables/partial-metadata.ts";
import type { Call } from "../verbs/call.ts";
import { parseApplyBody } from "../verbs/decode-body.ts";
import { readWatchRequest } from "../verbs/watch.ts";
import { chooseForm, prefersYaml, resolve, runCall, type RequestParts } from "./dispatch.ts";
import type { FaultEffect } from "./fault-rules.ts";
import { answerFault } from "./answer-fault.ts";
import type { Handling } from "./handling.ts";
import { sendJson, sendStatus, sendText, sendYaml, setCommonHeaders } from "./http-answer.ts";
import { answerOther } from "./other-paths.ts";
import { readBody } from "./request-body.ts";
import { findReview, type Review } from "./reviews.ts";
import { parsePath, verbOf, type RequestPath } from "./request-path.ts";

/** Serves one HTTP request. Never rejects: an unexpected error is a 500 with its text. */
export async function handleRequest(
  handling: Handling,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const receivedAtMs = handling.state.now();
  const uri = request.url ?? "/";
  const mark = uri.indexOf("?");
  const path = parsePath(mark === -1 ? uri : uri.slice(0, mark));
  const query = new URLSearchParams(mark === -1 ? "" : uri.slice(mark + 1));
  const auditId = headerOf(request, "audit-id") || randomUUID();
  const parts = readParts(request, path, query);
  setCommonHeaders(response, auditId, handling.flowIds);
  audit(handling, { request, response, path, parts, auditId, uri, receivedAtMs });
  try {
    await serve(handling, { request, response, path, parts });
  } catch (error) {
    if (response.headersSent) response.destroy();
    else if (error instanceof StatusError) sendStatus(response, error);
    else {
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      sendStatus(
        response,
        new StatusError(500, "InternalError", `Internal error occurred: ${text}`),
      );
    }
  }
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: RequestPath;
  readonly parts: RequestParts;
}

async function serve(handling: Handling, exchange: Exchange): Promise<void> {
  const { request, response, path, parts } = exchange;
  const resourceName = path.kind === "resource" ? resourceId(path.resource) : "";
  const target = { verb: parts.verb, resource: resourceName, userAgent: parts.userAgent };
  const effect = path.kind === "resource" ? handling.faults.meet(target) : undefined;
  if (effect !== undefined && (await answerFault(effect, request, response))) return;
  if (path.kind === "other") {
    answerOther(handling, request, response, path.path);
    return;
  }
  const review = findReview(path.resource);
  if (review !== undefined && parts.method === "POST") {
    await answerReview(review, exchange);
    return;
  }
  const resolved = resolve(handling.state, path.resource, parts);
  if (resolved.kind === "unknown") sendText(response, 404, "404 page not found\n");
  else if (resolved.kind === "refused") sendStatus(response, resolved.error);
  else {
    const { call } = resolved;
    const body = hasBody(parts.method) ? await readBody(request, call) : { body: "" };
    await answer(handling, exchange, { ...call, ...body }, effect);
  }
}

async function answerReview(
  { kind, group, version, status }: Review,
  { request, response, parts }: Exchange,
): Promise<void> {
  const builtin = { contentType: parts.contentType, kind: { isCustom: false } };
  const { body } = await readBody(request, builtin);
  const asked = parseApplyBody(body);
  const apiVersion = formatApiVersion(group, version);
  sendJson(response, 201, JSON.stringify({ metadata: {}, ...asked, kind, apiVersion, status }));
}

/** Converts the lines of a watch to the form that the client wants; undefined for the objects as they are. */
function lineFormat(
  { accept, query }: RequestParts,
  { kind, state }: Call,
): ((line: string) => string) | undefined {
  const form = chooseForm(accept);
  if (form === "PartialObjectMetadata") return makePartialLine;
  if (form !== "Table") return undefined;
  return makeTableLines(kind, query.get("includeObject") ?? "Metadata", state.now);
}

/** Runs a call and converts its response to the form that the client wants. */
async function runInForm(
  { verb, accept, query }: RequestParts,
  call: Call,
): Promise<{ readonly code: number; readonly text: string }> {
  const { code, text } = await runCall(verb, call);
  const form = chooseForm(accept);
  if (form === undefined || form === "object") return { code, text };
  const object = parseJson(text) as JsonObject;
  if (form === "Table") {
    const include = query.get("includeObject") ?? "Metadata";
    const nowMs = call.state.now();
    return { code, text: JSON.stringify(makeTable(call.kind, object, { include, nowMs })) };
  }
  if (object["kind"] === "Status") return { code, text };
  return { code, text: JSON.stringify(makePartial(form, object, call.kind)) };
}

async function answer(
  { watches }: Handling,
  { request, response, parts }: Exchange,
  call: Call,
  effect: FaultEffect | undefined,
): Promise<void> {
  try {
    if (parts.verb === "watch") {
      const format = lineFormat(parts, call);
      watches.open(await readWatchRequest(call), request, response, { effect, format });
      return;
    }
    const { code, text } = await runInForm(parts, call);
    if (effect?.kind === "silence") return;
    if (effect?.kind === "drop") request.socket.destroy();
    else if (prefersYaml(parts.accept)) sendYaml(response, code, text, call.warnings);
    else sendJson(response, code, text, call.warnings);
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    sendStatus(response, error, call.warnings);
  }
}

function readParts(
  request: IncomingMessage,
  path: RequestPath,
  query: URLSearchParams,
): RequestParts {
  const method = request.method ?? "GET";
  const hasName = path.kind === "resource" && path.resource.name !== "";
  return {
    method,
    verb: path.kind === "resource" ? verbOf(method, hasName, query) : method.toLowerCase(),
    query,
    userAgent: headerOf(request, "user-agent"),
    contentType: (headerOf(request, "content-type").split(";")[0] ?? "").trim().toLowerCase(),
    accept: headerOf(request, "accept"),
  };
}

const hasBody = (method: string) => method !== "GET" && method !== "HEAD";

function headerOf(request: IncomingMessage, name: string): string {
  const value = request.headers[name];
  return typeof value === "string" ? value : "";
}

/** Records a request when its response ends or its client disconnects; for a watch, at its end. */
function audit(
  { auditLog, state }: Handling,
  {
    request,
    response,
    path,
    parts,
    auditId,
    uri,
    receivedAtMs,
  }: Exchange & { readonly auditId: string; readonly uri: string; readonly receivedAtMs: number },
): void {
  if (auditLog === undefined) return;
  const sourceIp = request.socket.remoteAddress ?? "";
  response.once("close", () => {
    auditLog.write({
      auditId,
      verb: parts.verb,
      requestUri: uri,
      userAgent: parts.userAgent,
      sourceIp,
      object: path.kind === "resource" ? path.resource : undefined,
      code: response.headersSent ? response.statusCode : 0,
      receivedAtMs,
      finishedAtMs: state.now(),
    });
  });
}
