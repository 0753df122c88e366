import { isJsonObject, KonvergeError, type JsonValue } from "@konverge/core";
import type { RawRequest } from "../contract/kube-client.ts";
import { isConnection } from "../names/connections.ts";

interface WrittenRequest {
  readonly method: RawRequest["method"];
  readonly path: string;
  readonly subresource: string | undefined;
  readonly body: string | undefined;
}

/**
 * Returns the path and body of a request that the server only checks. Reads stay as they are.
 * @throws KonvergeError `invalid_request` if the server would make the change
 */
export function asDryRun({ method, path, subresource = "", body }: WrittenRequest): {
  readonly path: string;
  readonly body: string | undefined;
} {
  if (isConnection({ method, subresource })) {
    const detail = `${method} ${subresource} has no dry run, because the request goes to a program; call it without dryRun`;
    throw new KonvergeError("invalid_request", detail);
  }
  if (method === "GET") return { path, body };
  const separator = path.includes("?") ? "&" : "?";
  return {
    path: /[?&]dryRun=/.test(path) ? path : `${path}${separator}dryRun=All`,
    // The server ignores the query of a deletion that has a body.
    body: method === "DELETE" && body !== undefined ? withDryRun(body) : body,
  };
}

function withDryRun(body: string): string {
  let options: JsonValue | undefined;
  try {
    options = JSON.parse(body) as JsonValue;
  } catch {
    // Rejected below.
  }
  if (isJsonObject(options)) return JSON.stringify({ ...options, dryRun: ["All"] });
  const detail =
    "the body of a deletion must be DeleteOptions as JSON, so that it can be a dry run";
  throw new KonvergeError("invalid_request", detail);
}
