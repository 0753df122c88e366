import type { Role } from "@konverge/contracts";
import type { ErrorCode } from "@konverge/core";
import type { Context } from "hono";
import type { z } from "zod";
import type { AuditNote } from "../kept/audit-log.ts";
import type { ApiEnv } from "../access/authenticate.ts";
import type { Caller } from "../access/caller.ts";

/** The names in braces of a path such as `/v1/guards/{cluster}`. */
type NamesIn<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | NamesIn<Rest>
  : never;

export interface RouteInput<Path extends string, Query, Body> {
  readonly params: Readonly<Record<NamesIn<Path>, string>>;
  readonly query: Query;
  readonly body: Body;
  readonly caller: Caller;
  /** For what is not in the schemas: headers, a status other than the usual one, the end of the connection. */
  readonly context: Context<ApiEnv>;
  /** To be filled: headers of an answer that is no Response. Those of the context, such as cookies, only a Response of its own has. */
  readonly headers: Record<string, string>;
  /** Made for who waits: aborted when the caller has gone, or the API stops and answers what is known. */
  readonly waiting: () => AbortSignal;
  /** Tells the audit log what was changed. Orders are awaited; requests are gathered by the second. */
  readonly audit: (note: Omit<AuditNote, "by">, author?: string) => void;
}

/** One route: what it takes, what it answers, who may use it, and what it does. The OpenAPI document is made of the same. */
export interface RouteSpec<
  Path extends string,
  Query extends z.ZodType,
  Body extends z.ZodType,
  Answer extends z.ZodType,
> {
  /** Names it in the OpenAPI document, and so in generated clients. */
  readonly id: string;
  readonly method: "get" | "post" | "put" | "delete";
  readonly path: Path;
  readonly summary: string;
  /** The least role that may use it; `none` needs no token. */
  readonly role: Role | "none";
  readonly query?: Query;
  readonly body?: Body;
  readonly maxBodyKiB?: number;
  /** True where the body's `by` is the author: with a token it is the token's name. */
  readonly isOperatorAction?: boolean;
  readonly answer: Answer;
  /** Default 200. */
  readonly status?: 200 | 202 | 204;
  /** Media type of the answer. Default `application/json`. */
  readonly produces?: string;
  /** Headers that it looks at, by name, with what they do. */
  readonly headers?: Readonly<Record<string, string>>;
  /** What it can answer besides what any route can (no token, no right, Redis away). */
  readonly problems?: readonly ErrorCode[];
  handle(
    input: RouteInput<Path, z.output<Query>, z.output<Body>>,
  ): Promise<z.input<Answer> | Response>;
}

/** A route among others. */
export type Route = RouteSpec<string, z.ZodType, z.ZodType, z.ZodType>;

export function route<
  Path extends string,
  Answer extends z.ZodType,
  Query extends z.ZodType = z.ZodUndefined,
  Body extends z.ZodType = z.ZodUndefined,
>(spec: RouteSpec<Path, Query, Body, Answer>): Route {
  return spec;
}
