import type { Role } from "@konverge/contracts";
import { isKonvergeError, KonvergeError } from "@konverge/core";
import type { Context, Hono } from "hono";
import type { AnswerStore } from "../kept/answer-store.ts";
import type { AuditLog, AuditNote } from "../kept/audit-log.ts";
import type { ApiEnv } from "../access/authenticate.ts";
import { allows, isUnrestricted, type Caller } from "../access/caller.ts";
import { jsonResponse } from "./json-response.ts";
import type { Admission } from "./admission.ts";
import { limitBody } from "./limit-body.ts";
import { checkInput, readJson } from "./read-json.ts";
import { replayed } from "./replayed.ts";
import type { Route } from "./route.ts";
import type { Scans } from "./scans.ts";
import type { Waits } from "./waits.ts";

/** The validated input of a request. */
interface RequestInput {
  readonly params: Readonly<Record<string, string>>;
  readonly query: unknown;
  readonly body: unknown;
}

/** Returns a Kubernetes user with the role and scope for one request. @throws KonvergeError `forbidden`, `identity_unavailable` */
export type AuthorizeUser = (
  operation: { readonly id: string; readonly role: Role },
  caller: Caller,
  input: RequestInput,
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

/** A longer request is answered only if its token is still valid. */
const LONG_MS = 1_000;
/** Enough for actions, which have a few lines of text. */
const DEFAULT_BODY_KIB = 4;

/** Serves the routes with permissions, rate limit, validation, idempotency and audit. */
export function mountRoutes(
  app: Hono<ApiEnv>,
  routes: readonly Route[],
  options: MountOptions,
): void {
  const { answers, onError, admission } = options;
  for (const spec of routes) {
    const path = spec.path.replaceAll(/\{(\w+)\}/g, ":$1");
    if (spec.body !== undefined) {
      app[spec.method](path, limitBody(spec.maxBodyKiB ?? DEFAULT_BODY_KIB));
    }
    app[spec.method](path, async (context) => {
      const caller = context.get("caller");
      if (spec.role === "none") return await answer(spec, context, options);
      if (caller.user === undefined) demandRole(caller, spec.role);
      admission.admit(caller);
      if (caller.user !== undefined) {
        const user = await authorized(spec, spec.role, context, options.authorizeUser);
        context.set("caller", user);
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

async function answer(
  spec: Route,
  context: Context<ApiEnv>,
  { audit, closing, admission, scans, waits, isStillValid }: MountOptions,
): Promise<Response> {
  const caller = context.get("caller");
  const startMs = performance.now();
  const notes: AuditNote[] = [];
  const headers: Record<string, string> = {};
  const input = await readInput(spec, context);
  if (spec.price !== undefined) admission.charge(caller, spec.price(input) - 1);
  const handling = spec.handle({
    ...input,
    caller,
    context,
    headers,
    openWait: (waitMs) =>
      waits.open(caller, waitMs, AbortSignal.any([context.req.raw.signal, closing])),
    admit: (id) => admission.admit({ id }),
    scan: (run) => scans.run(caller, run),
    audit: (note, author = caller.name) =>
      notes.push({ ...note, by: author, via: note.via ?? caller.via }),
  });
  // A handler that failed halfway has recorded what it has changed.
  const result = await handling.finally(async () => {
    for (const note of notes) {
      if (note.action === "reconcile" || note.action === "mutate") audit.gather(note);
      else await audit.write(note);
    }
  });
  const isLong = spec.role !== "none" && performance.now() - startMs > LONG_MS;
  if (isLong && !(await isStillValid(caller))) {
    throw new KonvergeError("unauthorized", "the token was revoked or expired during the request");
  }
  if (result instanceof Response) return result;
  if (spec.method === "get") linkNext(context, result, headers);
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
  spec: Route,
  role: Role,
  context: Context<ApiEnv>,
  authorize: AuthorizeUser | undefined,
): Promise<Caller> {
  if (authorize === undefined) throw new TypeError("a Kubernetes user without a check of rights");
  const input = await readInput(spec, context);
  return await authorize({ id: spec.id, role }, context.get("caller"), input);
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
  if (via === "token" || via === "session" || via === "kubernetes") return name;
  return via === "process" && !("by" in body) ? name : undefined;
}

/** @throws KonvergeError `forbidden` */
function demandRole(caller: Caller, role: Caller["role"]): void {
  if (allows(caller, role)) return;
  const detail = `requires the role ${role} ("${caller.name}" is ${caller.role})`;
  throw new KonvergeError("forbidden", detail);
}
