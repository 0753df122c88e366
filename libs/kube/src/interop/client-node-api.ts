import { defined, KonvergeError } from "@konverge/core";
import type { ClientNodeApi, ForwardAnswer, ForwardRequest } from "../contract/forward.ts";
import { createRequestContext, type RequestContext } from "./request-context.ts";
import { createResponseContext, type ResponseContext } from "./response-context.ts";

const METHODS: ReadonlySet<string> = new Set(["GET", "POST", "PUT", "PATCH", "DELETE"]);

/**
 * Returns an instance of a generated API class whose requests are sent by `forward`. The configuration has the form of
 * client-node's `createConfiguration({ httpApi })`; importing that function would cost 45 MiB of memory per process.
 */
export function createClientNodeApi<Api>(
  type: ClientNodeApi<Api>,
  forward: (request: ForwardRequest) => Promise<ForwardAnswer>,
): Api {
  const configuration = {
    baseServer: { makeRequestContext: createRequestContext },
    httpApi: { send: (context: RequestContext) => new Observed(send(context, forward)) },
    middleware: [],
    authMethods: {},
  };
  return new type(configuration as never);
}

/** The two methods of client-node's `Observable` that its generated code calls. */
class Observed<T> {
  readonly #result: Promise<T>;

  constructor(result: Promise<T>) {
    this.#result = result;
  }

  toPromise(): Promise<T> {
    return this.#result;
  }

  pipe<S>(next: (value: T) => S | Promise<S>): Observed<S> {
    const piped = async (): Promise<S> => next(await this.#result);
    return new Observed(piped());
  }
}

async function send(
  context: RequestContext,
  forward: (request: ForwardRequest) => Promise<ForwardAnswer>,
): Promise<ResponseContext> {
  return createResponseContext(await forward(toRequest(context)));
}

/** @throws KonvergeError `invalid_request` for a call that the transport cannot make */
function toRequest(context: RequestContext): ForwardRequest {
  const method = context.getHttpMethod();
  const { pathname, search, searchParams } = new URL(context.getUrl());
  const streams = ["watch", "follow"].find((name) => searchParams.get(name) === "true");
  if (streams !== undefined) {
    throw new KonvergeError(
      "invalid_request",
      `${streams}=true: kube.api() returns whole responses and cannot stream; use client-node's own Watch or Log with a KubeConfig, or a watch of a controller`,
    );
  }
  const body = context.getBody();
  if (!METHODS.has(method) || (body !== undefined && typeof body !== "string")) {
    throw new KonvergeError(
      "invalid_request",
      `${method} ${pathname}: kube.api() sends ${[...METHODS].join(", ")} with a text as body; use client-node with a KubeConfig for this call`,
    );
  }
  const signal = context.getSignal();
  return {
    method: method as ForwardRequest["method"],
    path: pathname + search,
    headers: context.getHeaders(),
    ...defined({ body, signal }),
  };
}
