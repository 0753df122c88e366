import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import { stringify } from "yaml";
import { StatusError } from "../errors/status-error.ts";

/** Uids of the flow schema and the priority level of a request: constant, because the server has one level. */
export interface FlowIds {
  readonly flowSchema: string;
  readonly priorityLevel: string;
}

export const makeFlowIds = (): FlowIds => ({
  flowSchema: randomUUID(),
  priorityLevel: randomUUID(),
});

/** Sets the headers of every response. */
export function setCommonHeaders(response: ServerResponse, auditId: string, ids: FlowIds): void {
  response.setHeader("Audit-Id", auditId);
  response.setHeader("Cache-Control", "no-cache, private");
  response.setHeader("X-Kubernetes-Pf-Flowschema-Uid", ids.flowSchema);
  response.setHeader("X-Kubernetes-Pf-Prioritylevel-Uid", ids.priorityLevel);
}

export function sendJson(
  response: ServerResponse,
  code: number,
  text: string,
  warnings: readonly string[] = [],
): void {
  sendBody(response, code, { type: "application/json", body: `${text}\n` }, warnings);
}

/** Sends a JSON document as YAML, with sorted keys. */
export function sendYaml(
  response: ServerResponse,
  code: number,
  text: string,
  warnings: readonly string[],
): void {
  const body = stringify(JSON.parse(text), { sortMapEntries: true, lineWidth: 0 });
  sendBody(response, code, { type: "application/yaml", body }, warnings);
}

function sendBody(
  response: ServerResponse,
  code: number,
  { type, body }: { readonly type: string; readonly body: string },
  warnings: readonly string[],
): void {
  if (warnings.length > 0) response.setHeader("Warning", warnings.map(formatWarning));
  response.setHeader("Content-Type", type);
  response.setHeader("Content-Length", Buffer.byteLength(body));
  response.writeHead(code);
  response.end(body);
}

/** Sends a document that is not JSON. */
export function sendBytes(
  response: ServerResponse,
  code: number,
  type: string,
  body: Buffer,
): void {
  response.setHeader("Content-Type", type);
  response.setHeader("Content-Length", body.length);
  response.writeHead(code);
  response.end(body);
}

export function sendText(response: ServerResponse, code: number, text: string): void {
  response.setHeader("Content-Type", "text/plain; charset=utf-8");
  response.setHeader("X-Content-Type-Options", "nosniff");
  response.writeHead(code);
  response.end(text);
}

/** Sends an error as a Status. */
export function sendStatus(
  response: ServerResponse,
  error: StatusError,
  warnings: readonly string[] = [],
): void {
  if (error.retryAfterSeconds > 0) response.setHeader("Retry-After", error.retryAfterSeconds);
  sendJson(response, error.code, JSON.stringify(error.toStatus()), warnings);
}

/** A rejection by priority and fairness, which is not a Status object. */
export function sendTooManyRequests(response: ServerResponse, retryAfterSeconds: number): void {
  response.setHeader("Retry-After", retryAfterSeconds);
  sendText(response, 429, "Too many requests, please try again later.\n");
}

/** RFC 7234 section 5.5, as written by kube-apiserver: control characters are removed, quotes are escaped. */
function formatWarning(text: string): string {
  const clean = text.replaceAll(/[\p{Cc}]/gu, " ").replaceAll(/["\\]/g, String.raw`\$&`);
  return `299 - "${clean}"`;
}
