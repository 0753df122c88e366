import { defined, isKonvergeError, type ErrorCode } from "@konverge/core";
import type { Context } from "hono";
import type { ApiEnv } from "../access/authenticate.ts";
import type { Caller } from "../access/caller.ts";
import type { AuditNote } from "../audit/audit-log.ts";
import type { Route } from "./route.ts";

/** Text without control characters. The names come from a request that was not accepted. */
const NAME = /^[\x20-\x7e]{1,253}$/;
/** The body of such a request is not read. */
const UNREAD: readonly ErrorCode[] = ["body_too_large", "rate_limited"];
/** Actions have shorter bodies. A longer body is not read if it was not read before the request was rejected. */
const MOST_BYTES = 4_096;
/** A longer body is not parsed again: the cost would exceed the value of its names. */
const MOST_PARSED = 65_536;

interface ChangeRoute {
  readonly id: string;
  readonly method: string;
  readonly path: RegExp;
}

/**
 * Returns a function that describes a failed change for the audit log; undefined for a read, and for deliveries, which have
 * their own metric. Without a valid token, it names only the operation.
 */
export function createRefusedChanges(
  routes: readonly Route[],
): (context: Context<ApiEnv>, error: unknown) => Promise<AuditNote | undefined> {
  const changes = routes
    .filter(({ method, takesBytes }) => method !== "get" && takesBytes !== true)
    .map(({ id, method, path }): ChangeRoute => {
      const pattern = path.replaceAll(/\{(\w+)\}/g, "(?<$1>[^/]+)");
      return { id, method: method.toUpperCase(), path: new RegExp(`^${pattern}$`) };
    });
  return async (context, error) => {
    const { method, path } = context.req;
    const found = changes.find((each) => each.method === method && each.path.test(path));
    if (found === undefined) return undefined;
    const code: ErrorCode = isKonvergeError(error) ? error.code : "internal";
    const filter = `${found.id}: ${code}`;
    const caller: Caller | undefined = context.get("caller");
    if (caller === undefined) return { action: "refused", by: "unknown", filter, count: 1 };
    const params = decoded(found.path.exec(path)?.groups ?? {});
    const body = UNREAD.includes(code) ? {} : await bodyOf(context);
    const { name, via } = caller;
    return {
      action: "refused",
      by: name,
      via,
      filter,
      ...placeIn({ ...body, ...params }),
      count: 1,
    };
  };
}

function decoded(params: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(params).flatMap(([name, text]) => {
      try {
        return [[name, decodeURIComponent(text)]];
      } catch (error) {
        if (!(error instanceof URIError)) throw error;
        return [];
      }
    }),
  );
}

/** Returns the body. A body that was already read is available again. */
async function bodyOf({ req }: Context): Promise<object> {
  try {
    const text = req.raw.bodyUsed ? await req.text() : await startOf(req.raw);
    const body: unknown = text.length > MOST_PARSED ? {} : JSON.parse(text);
    return typeof body === "object" && body !== null ? body : {};
  } catch {
    // The body is missing, no JSON, or aborted: the entry has no names of it.
    return {};
  }
}

/** Reads a short body. @throws SyntaxError for a longer one */
async function startOf({ body, headers }: Request): Promise<string> {
  const length = headers.get("content-length");
  if (body === null || (length !== null && !(Number(length) <= MOST_BYTES))) {
    throw new SyntaxError("the body is not read");
  }
  const chunks: Uint8Array[] = [];
  let size = 0;
  // If the body is longer, the loop cancels it on exit.
  for await (const chunk of body) {
    size += chunk.length;
    if (size > MOST_BYTES) throw new SyntaxError("the body is not read");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function placeIn(given: object): Partial<AuditNote> {
  const fields = given as Readonly<Record<string, unknown>>;
  const textOf = (field: string) => {
    const value = fields[field];
    return typeof value === "string" && NAME.test(value) ? value : undefined;
  };
  return defined({
    cluster: textOf("cluster"),
    controller: textOf("controller"),
    namespace: textOf("namespace"),
    name: textOf("name") ?? textOf("id"),
  });
}
