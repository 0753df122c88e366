import type { Role } from "@konverge/contracts";
import { isKonvergeError, KonvergeError } from "@konverge/core";
import type { Context, Hono, MiddlewareHandler } from "hono";
import type { AnswerStore } from "../kept/answer-store.ts";
import type { AuditLog, AuditNote } from "../audit/audit-log.ts";
import type { ApiEnv } from "../access/authenticate.ts";
import { allows, isUnrestricted, type Caller } from "../access/caller.ts";
import { jsonResponse } from "./json-response.ts";
import type { Admission } from "./admission.ts";
import { limitBody } from "./limit-body.ts";
import { checkInput, readJson } from "./read-json.ts";
import { replayed } from "./replayed.ts";
import type { Route } from "./route.ts";
import type { Scans } from "./scans.ts";
import { LONG_MS, waitOfChange, type Waits } from "./waits.ts";

/** The validated input of a request. */
interface RequestInput {
  readonly params: Readonly<Record<string, string>>;
  readonly query: unknown;
  readonly body: unknown;
}

/**
 * Returns a Kubernetes user with the role and scope for one request.
 * @param charge is called with the work of the checks, in simple requests
 * @throws KonvergeError `forbidden`, `identity_unavailable`
 */
export type AuthorizeUser = (
  operation: { readonly id: string; readonly role: Role },
  caller: Caller,
  input: RequestInput & { readonly charge: (tokens: number) => void },
) => Promise<Caller>;

export interface MountOptions {
  /** Set if Kubernetes tokens are accepted. */
  readonly authorizeUser?: AuthorizeUser | undefined;
  readonly audit: AuditLog;
  readonly answers: AnswerStore;
  readonly admission: Admission;
  readonly scans: Scans;
  readonly waits: Waits;
  /** True while an authenticated caller would still be accepted. */
  readonly isStillValid: (caller: Caller) => Promise<boolean>;
  /** Aborted when the API stops. */
  readonly closing: AbortSignal;
  readonly onError: (error: unknown) => void;
}

/** Enough for actions, which have a few lines of text. */
const DEFAULT_BODY_KIB = 4;
/** The size of a body that costs as much to parse as a simple request. */
const BODY_BYTES_PER_TOKEN = 32 * 1_024;

/** Serves the routes with permissions, rate limit, validation, idempotency and audit. */
export function mountRoutes(
  app: Hono<ApiEnv>,
  routes: readonly Route[],
  options: MountOptions,
): void {
  const { answers, onError, admission } = options;
  for (const spec of routes) {
    const path = spec.path.replaceAll(/\{(\w+)\}/g, ":$1");
    // Runs before the body is read.
    if (spec.role !== "none") app[spec.method](path, admitted(spec, spec.role, options));
    if (spec.body !== undefined) {
      app[spec.method](path, limitBody(maxBodyOf(spec)));
    }
    app[spec.method](path, async (context) => {
      const caller = context.get("caller");
      if (spec.role === "none") return await answer(spec, context, options);
      if (caller.user !== undefined && isTargetInBody(spec)) {
        admission.charge(caller, bodyBytesOf(spec, context) / BODY_BYTES_PER_TOKEN);
        const input = await readInput(spec, context);
        context.set("caller", await authorized(spec, spec.role, { context, input }, options));
      }
      const respond = () =>
        answer(spec, context, options).catch((error: unknown) => {
          throw withinScope(error, context.get("caller"));
        });
      if (spec.method === "get") return await respond();
      return await replayed(context, respond, { answers, callerId: caller.id, onError });
    });
  }
}

/**
 * Limits the rate of the caller. Rejects the request before its body is read if the path shows that the right is
 * missing.
 */
function admitted(spec: Route, role: Role, options: MountOptions): MiddlewareHandler<ApiEnv> {
  return async (context, next) => {
    const caller = context.get("caller");
    context.set("admittedMs", performance.now());
    options.admission.admit(caller);
    if (caller.user === undefined) demandRole(caller, role);
    else if (!isTargetInBody(spec)) {
      const query =
        spec.query === undefined ? undefined : checkInput(context.req.query(), spec.query);
      const input = { params: context.req.param(), query, body: undefined };
      context.set("caller", await authorized(spec, role, { context, input }, options));
    }
    await next();
  };
}

/** Returns true if only the body names the target. A path with parameters names the complete target. */
function isTargetInBody({ body, path }: Route): boolean {
  return body !== undefined && !path.includes("{");
}

async function answer(
  spec: Route,
  context: Context<ApiEnv>,
  { audit, closing, admission, scans, waits, isStillValid }: MountOptions,
): Promise<Response> {
  const caller = context.get("caller");
  const isRead = spec.method === "get";
  const notes: AuditNote[] = [];
  const headers: Record<string, string> = {};
  const input = await readInput(spec, context);
  if (spec.price !== undefined) admission.charge(caller, spec.price(input) - 1);
  const demandValid = async () => {
    if (spec.role === "none" || performance.now() - context.get("admittedMs") <= LONG_MS) return;
    if (await isStillValid(caller)) return;
    throw new KonvergeError("unauthorized", "the token was revoked or expired during the request");
  };
  // A change is never rejected after it was made. Its body may have arrived slowly.
  if (!isRead) await demandValid();
  const openWait = (waitMs: number) =>
    waits.open(caller, waitMs, AbortSignal.any([context.req.raw.signal, closing]));
  const handling = spec.handle({
    ...input,
    caller,
    context,
    headers,
    openWait: isRead
      ? openWait
      : (waitMs) => waitOfChange(openWait(waitMs), () => isStillValid(caller)),
    admit: (id) => admission.admit({ id }),
    scan: (run) => scans.run(caller, run),
    audit: (note, author = caller.name) =>
      notes.push({ ...note, by: author, via: note.via ?? caller.via }),
  });
  // A handler that failed halfway has recorded what it has changed. The change is made, so an entry that cannot be written
  // now does not fail the request.
  const result = await handling.finally(async () => {
    for (const note of notes) {
      if (note.action === "reconcile" || note.action === "mutate") audit.gather(note);
      else await audit.record(note);
    }
  });
  if (isRead) await demandValid();
  if (result instanceof Response) return result;
  if (isRead) linkNext(context, result, headers);
  const status = spec.status === 202 ? 202 : 200;
  return jsonResponse(result, status, headers);
}

async function readInput(spec: Route, context: Context<ApiEnv>): Promise<RequestInput> {
  const { req } = context;
  const body = spec.body === undefined ? undefined : await readJson(req, spec);
  const by = spec.isOperatorAction === true ? authorFor(context.get("caller"), body) : undefined;
  const given = by === undefined ? body : { ...(body as object), by };
  return {
    params: req.param(),
    query: spec.query === undefined ? undefined : checkInput(req.query(), spec.query),
    body: spec.body === undefined ? undefined : checkInput(given, spec.body),
  };
}

/** Asks for the rights before a stored response could be repeated. */
async function authorized(
  { id }: Route,
  role: Role,
  { context, input }: { readonly context: Context<ApiEnv>; readonly input: RequestInput },
  { authorizeUser, admission }: MountOptions,
): Promise<Caller> {
  if (authorizeUser === undefined)
    throw new TypeError("authorizeUser is required for Kubernetes users");
  const caller = context.get("caller");
  const charge = (tokens: number) => admission.charge(caller, tokens);
  return await authorizeUser({ id, role }, caller, { ...input, charge });
}

function maxBodyOf({ maxBodyKiB = DEFAULT_BODY_KIB }: Route): number {
  return maxBodyKiB;
}

/** Returns the announced size of a body, or its limit if none is announced. */
function bodyBytesOf(spec: Route, { req }: Context): number {
  const length = Number(req.header("content-length"));
  return length >= 0 ? length : maxBodyOf(spec) * 1_024;
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
  if (via === "local") return undefined;
  return via !== "process" || !("by" in body) ? name : undefined;
}

/** @throws KonvergeError `forbidden` */
function demandRole(caller: Caller, role: Caller["role"]): void {
  if (allows(caller, role)) return;
  const detail = `requires the role ${role} ("${caller.name}" is ${caller.role})`;
  throw new KonvergeError("forbidden", detail);
}
