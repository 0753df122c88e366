import type { JsonValue } from "@konverge/core";
import type { ErrorRef, KubeApiError } from "../errors/kube-api-error.ts";

/** A request of another client library. */
export interface ForwardRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Absolute path on the server, with its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Aborts this call, in addition to the scope's own signal. */
  readonly signal?: AbortSignal;
}

/** The response to a request of another client library, whatever its status. */
export interface ForwardAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** The parsed body of the request; undefined unless it is JSON. */
  readonly sent: JsonValue | undefined;
  /** The parsed body of a success; undefined unless it is JSON. */
  readonly value: JsonValue | undefined;
  /** The error of a response with another status than 2xx. */
  readonly error: KubeApiError | undefined;
  /** The target; undefined for paths without a resource. */
  readonly target: (ErrorRef & { readonly subresource?: string }) | undefined;
}

/**
 * A generated API class of client-node, such as `CoreV1Api`. Its parameter is a configuration of the caller's copy of
 * client-node, which need not be the one of Konverge.
 */
export type ClientNodeApi<Api> = new (configuration: never) => Api;
