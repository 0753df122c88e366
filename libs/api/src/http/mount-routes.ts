import { isKonvergeError, KonvergeError, takeToken, type BucketLimits } from "@konverge/core";
import type { Context, Hono } from "hono";
import type { AnswerStore } from "../kept/answer-store.ts";
import type { AuditLog, AuditNote } from "../kept/audit-log.ts";
import type { ApiEnv } from "../access/authenticate.ts";
import { allows, isUnrestricted, type Caller } from "../access/caller.ts";
import { jsonResponse } from "./json-response.ts";
import { limitBody } from "./limit-body.ts";
import { checkInput, readJson } from "./read-json.ts";
import { replayed } from "./replayed.ts";
import type { Route } from "./route.ts";

export interface MountOptions {
  readonly audit: AuditLog;
  readonly answers: AnswerStore;
  /** Rate limit per caller and process. */
  readonly rate: BucketLimits;
  /** Aborted when the API stops. */
  readonly closing: AbortSignal;
  readonly onError: (error: unknown) => void;
}

/** Enough for actions, which have a few lines of text. */
const DEFAULT_BODY_KIB = 4;

/** Serves the routes with permissions, rate limit, validation, idempotency and audit. */
export function mountRoutes(
  app: Hono<ApiEnv>,
  routes: readonly Route[],
  options: MountOptions,
): void {
  const { answers, onError } = options;
  const admit = createAdmission(options.rate);
  for (const spec of routes) {
    const path = spec.path.replaceAll(/\{(\w+)\}/g, ":$1");
    if (spec.body !== undefined) {
      app[spec.method](path, limitBody(spec.maxBodyKiB ?? DEFAULT_BODY_KIB));
    }
    app[spec.method](path, async (context) => {
      const caller = context.get("caller");
      if (spec.role === "none") return await answer(spec, context, options);
      demandRole(caller, spec.role);
      admit(caller);
      const respond = () =>
        answer(spec, context, options).catch((error: unknown) => {
          throw withinScope(error, caller);
        });
      if (spec.method === "get") return await respond();
      return await replayed(context, respond, { answers, callerId: caller.id, onError });
    });
  }
}

async function answer(
  spec: Route,
  context: Context<ApiEnv>,
  { audit, closing }: Pick<MountOptions, "audit" | "closing">,
): Promise<Response> {
  const caller = context.get("caller");
  const notes: AuditNote[] = [];
  const body = spec.body === undefined ? undefined : await readJson(context.req);
  const by = spec.isOperatorAction === true ? authorFor(caller, body) : undefined;
  const headers: Record<string, string> = {};
  const given = by === undefined ? body : { ...(body as object), by };
  const handling = spec.handle({
    params: context.req.param(),
    query: spec.query === undefined ? undefined : checkInput(context.req.query(), spec.query),
    body: spec.body === undefined ? undefined : checkInput(given, spec.body),
    caller,
    context,
    headers,
    waiting: () => AbortSignal.any([context.req.raw.signal, closing]),
    audit: (note, author = caller.name) => notes.push({ ...note, by: author }),
  });
  // A handler that failed halfway has recorded what it has changed.
  const result = await handling.finally(async () => {
    for (const note of notes) {
      if (note.action === "reconcile") audit.gather(note);
      else await audit.write(note);
    }
  });
  if (result instanceof Response) return result;
  if (spec.method === "get") linkNext(context, result, headers);
  const status = spec.status === 202 ? 202 : 200;
  return jsonResponse(result, status, headers);
}

/** The text of `unknown_controller` lists the known names, which may be outside of the scope of the caller. */
function withinScope(error: unknown, caller: Caller): unknown {
  if (isUnrestricted(caller) || !isKonvergeError(error)) return error;
  if (error.code !== "unknown_controller") return error;
  const detail = "unknown controller or cluster; GET /v1/controllers lists those of the token";
  return new KonvergeError("unknown_controller", detail, { cause: error });
}

/** Adds the `Link` header (RFC 8288) to a list with a next page. */
function linkNext({ req }: Context, result: unknown, headers: Record<string, string>): void {
  if (typeof result !== "object" || result === null || !("next" in result)) return;
  const { next } = result;
  if (typeof next !== "string") return;
  const query = new URLSearchParams(req.query());
  query.set("cursor", next);
  headers["link"] = `<${req.path}?${query.toString()}>; rel="next"`;
}

/**
 * Returns the author of an action: the name of the token, which the body cannot override. Undefined if the body names the
 * author.
 */
function authorFor({ via, name }: Caller, body: unknown): string | undefined {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return undefined;
  if (via === "token" || via === "session") return name;
  return via === "process" && !("by" in body) ? name : undefined;
}

/** @throws KonvergeError `forbidden` */
function demandRole(caller: Caller, role: Caller["role"]): void {
  if (allows(caller, role)) return;
  const detail = `requires the role ${role} ("${caller.name}" is ${caller.role})`;
  throw new KonvergeError("forbidden", detail);
}

/**
 * One bucket per caller and process. A shared bucket would be exact, but would cost each request a round trip to Redis.
 */
function createAdmission(limits: BucketLimits): (caller: Caller) => void {
  const buckets = new Map<string, number>();
  return ({ id }) => {
    const { tatMs, waitMs } = takeToken(limits, buckets.get(id) ?? 0, performance.now());
    if (waitMs > 0) {
      const detail = `more than ${limits.ratePerSecond} requests per second from this caller`;
      throw new KonvergeError("rate_limited", detail, { retryAfterMs: Math.ceil(waitMs) });
    }
    buckets.set(id, tatMs);
  };
}
