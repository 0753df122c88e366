import type { CallVerb } from "@konverge/core";
import type { ErrorRef } from "../errors/kube-api-error.ts";
import type { ApiAnswer, HttpAnswer } from "./http-answer.ts";

/** The part of an API call that a plan may answer or replace. */
export interface PlannedCall {
  readonly verb: CallVerb;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** With the query. */
  readonly path: string;
  readonly body?: string | undefined;
  readonly contentType?: string | undefined;
  /** Default `application/json`. */
  readonly accept?: string | undefined;
  /** Receives each response, also one that becomes an error. */
  readonly onAnswer?: ((answer: HttpAnswer) => void) | undefined;
  /** The target; undefined for paths without a resource. */
  readonly ref?: ErrorRef | undefined;
  readonly subresource?: string | undefined;
  readonly sensitive: boolean;
}

/** Sends a call to the API server. */
export type SendPlanned = (call: PlannedCall) => Promise<ApiAnswer>;

/**
 * A plan of calls. While the scope of a client has one, the transport rejects each write that is not a dry run, and reads return
 * the planned objects.
 */
export interface CallPlan {
  /** Answers a call, with any number of calls to the API server. */
  send(call: PlannedCall, live: SendPlanned): Promise<ApiAnswer>;
}

/** Holds the calls of a scope to what was planned. */
export interface CallHold {
  /** Sends a call, or rejects it. */
  send(call: PlannedCall, live: SendPlanned): Promise<ApiAnswer>;
}
