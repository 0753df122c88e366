import { isJsonObject, type JsonValue } from "@konverge/core";

interface SentWrite {
  readonly method: string;
  /** With the query, if it is not given separately. */
  readonly path: string;
  readonly query?: Readonly<Record<string, unknown>> | undefined;
  readonly body: JsonValue | undefined;
}

/** Returns true for a write that the API server does not store. */
export function isDryRun({ method, path, query, body }: SentWrite): boolean {
  // With a body, the server ignores the query of a delete.
  if (method === "DELETE" && isJsonObject(body)) {
    return Array.isArray(body["dryRun"]) && body["dryRun"].length > 0;
  }
  const [, inPath = ""] = path.split("?", 2);
  return query?.["dryRun"] !== undefined || new URLSearchParams(inPath).has("dryRun");
}
