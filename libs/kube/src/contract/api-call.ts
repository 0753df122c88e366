import type { CallVerb } from "@konverge/core";
import type { ErrorRef } from "../errors/kube-api-error.ts";
import type { HttpAnswer } from "./http-answer.ts";
import type { CallScope } from "./call-record.ts";

/** An API call, ready to be sent. */
export interface ApiCall {
  readonly verb: CallVerb;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** With the query. */
  readonly path: string;
  readonly body?: string | undefined;
  readonly contentType?: string | undefined;
  /** Default `application/json`. */
  readonly accept?: string | undefined;
  /** Further request headers; they may replace `Accept`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Receives each response, also one that becomes an error. */
  readonly onAnswer?: (answer: HttpAnswer) => void;
  /** The target; undefined for paths without a resource. */
  readonly ref?: ErrorRef | undefined;
  readonly subresource?: string | undefined;
  /** True for a write that is rejected if the object has changed, also by the same write. It may be sent twice. */
  readonly guarded?: boolean | undefined;
  /** True if a response may have any content, not only JSON. */
  readonly anyContent?: boolean;
  readonly scope: CallScope;
  readonly signal?: AbortSignal | undefined;
  readonly sensitive: boolean;
}
