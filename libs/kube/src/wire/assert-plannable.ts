import { isJsonObject, KonvergeError, parseJson, type JsonValue } from "@konverge/core";
import type { ApiCall } from "../contract/api-call.ts";
import { hasConnection } from "../names/connections.ts";
import { parsePath } from "../names/resource-path.ts";

/**
 * The last check before a call of a plan is sent: a plan must never write, whatever the code above did. Rejects each request that
 * is neither a read nor a dry run. With `isDryRunOnly`, all calls of the client are checked.
 * @throws KonvergeError `not_plannable`
 */
export function assertPlannable(
  { scope, method, path, body }: ApiCall,
  { isDryRunOnly = false }: { readonly isDryRunOnly?: boolean | undefined } = {},
): void {
  if (scope.plan === undefined && !isDryRunOnly) return;
  const place = parsePath(path);
  const isProgram = hasConnection(place?.subresource);
  if (!isProgram && (method === "GET" || isWhollyDry({ method, path, body }))) return;
  const [target = ""] = path.split("?", 1);
  throw new KonvergeError(
    "not_plannable",
    `${method} ${target} was not sent, because a plan sends only reads and dry runs`,
  );
}

/** As the API server reads it: with a body, the query of a deletion is ignored. */
function isWhollyDry({ method, path, body }: Pick<ApiCall, "method" | "path" | "body">): boolean {
  const [, query = ""] = path.split("?", 2);
  if (!isAll(new URLSearchParams(query).getAll("dryRun"))) return false;
  if (method !== "DELETE" || body === undefined) return true;
  const options = parsed(body);
  return isJsonObject(options) && isAll(options["dryRun"]);
}

function isAll(values: JsonValue | undefined): boolean {
  return Array.isArray(values) && values.length > 0 && values.every((value) => value === "All");
}

function parsed(body: string): JsonValue | undefined {
  try {
    return parseJson(body);
  } catch {
    // The server would read it in another format.
    return undefined;
  }
}
