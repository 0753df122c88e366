import type { Role } from "@konverge/contracts";
import type { ErrorCode } from "@konverge/core";
import type { Context } from "hono";
import type { z } from "zod";
import type { AuditNote } from "../audit/audit-log.ts";
import type { ApiEnv } from "../access/authenticate.ts";
import type { Caller } from "../access/caller.ts";
import type { RunScan } from "./scans.ts";
import type { Wait } from "./waits.ts";

/** The names in braces of a path such as `/v1/guards/{cluster}`. */
type NamesIn<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | NamesIn<Rest>
  : never;

export interface RouteInput<Path extends string, Query, Body> {
  readonly params: Readonly<Record<NamesIn<Path>, string>>;
  readonly query: Query;
  readonly body: Body;
  readonly caller: Caller;
  /** For everything outside of the schemas: headers, another status, the end of the connection. */
  readonly context: Context<ApiEnv>;
  /** Headers of the response, unless the handler returns a Response itself. */
  readonly headers: Record<string, string>;
  /**
   * Opens a wait, which ends early when the caller disconnects or the API stops. To be opened before a change.
   * @throws KonvergeError `rate_limited`
   */
  readonly openWait: (waitMs: number) => Wait;
  /** Limits the rate of a caller that the handler has authenticated itself. @throws KonvergeError `rate_limited` */
  readonly admit: (callerId: string) => void;
  /** Runs a scan in turns with others and charges the caller for its rows. @throws KonvergeError `rate_limited` */
  readonly scan: RunScan;
  /** Records a change in the audit log. Requests are grouped by second; other changes are written immediately. */
  readonly audit: (note: Omit<AuditNote, "by">, author?: string) => void;
}

/** A route with its schemas and handler. The OpenAPI document is generated from it. */
interface RouteBody<
  Path extends string,
  Query extends z.ZodType,
  Body extends z.ZodType,
  Answer extends z.ZodType,
> {
  /** The operation ID in the OpenAPI document and in generated clients. */
  readonly id: string;
  readonly path: Path;
  readonly summary: string;
  readonly query?: Query;
  readonly body?: Body;
  readonly maxBodyKiB?: number;
  /** True if the handler reads the bytes of the body itself, for a signature. */
  readonly takesBytes?: boolean;
  /** True if integers of the body beyond 2^53 are kept, as raw numbers. */
  readonly keepsDigits?: boolean;
  /** Returns the work of a request in simple requests, with which the caller is charged. Default 1. */
  price?(input: { readonly query: z.output<Query>; readonly body: z.output<Body> }): number;
  readonly answer: Answer;
  /** Default 200. */
  readonly status?: 200 | 202 | 204;
  /** Media type of the answer. Default `application/json`. */
  readonly produces?: string;
  /** Descriptions of the accepted headers, by name. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Error codes in addition to those of every route. */
  readonly problems?: readonly ErrorCode[];
  handle(
    input: RouteInput<Path, z.output<Query>, z.output<Body>>,
  ): Promise<z.input<Answer> | Response>;
}

export interface RouteSpec<
  Path extends string,
  Query extends z.ZodType,
  Body extends z.ZodType,
  Answer extends z.ZodType,
> extends RouteBody<Path, Query, Body, Answer> {
  readonly method: "get" | "post" | "put" | "delete";
  /** Minimum role; `none` requires no token. */
  readonly role: Role | "none";
  /** True if the body has an author in `by`, which the name of a token replaces. */
  readonly isOperatorAction?: boolean;
}

/** Any route. */
export type Route = RouteSpec<string, z.ZodType, z.ZodType, z.ZodType>;

export function route<
  Path extends string,
  Answer extends z.ZodType,
  Query extends z.ZodType = z.ZodUndefined,
  Body extends z.ZodType = z.ZodUndefined,
>(spec: RouteSpec<Path, Query, Body, Answer>): Route {
  return spec;
}

/** Reads something; for every role. */
export function readRoute<
  Path extends string,
  Answer extends z.ZodType,
  Query extends z.ZodType = z.ZodUndefined,
>(spec: RouteBody<Path, Query, z.ZodUndefined, Answer>): Route {
  return { ...spec, method: "get", role: "viewer" };
}

/** Changes something, with an author and a reason; for operators. */
export function actionRoute<
  Path extends string,
  Answer extends z.ZodType,
  Query extends z.ZodType = z.ZodUndefined,
  Body extends z.ZodType = z.ZodUndefined,
>(spec: RouteBody<Path, Query, Body, Answer>): Route {
  return { ...spec, method: "post", role: "operator", isOperatorAction: true };
}
