import { ensureError, KonvergeError } from "@konverge/core";
import type { Dispatcher } from "undici";

export interface HttpRequest {
  readonly origin: string;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body?: string;
  readonly signal?: AbortSignal | undefined;
  /** For the whole exchange, from sending to the last byte. */
  readonly deadlineMs: number;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** The server went away in the middle of the exchange, so that a read may be sent again at once. */
export class ConnectionBroken extends KonvergeError {
  constructor(message: string, cause: Error) {
    super("kube_unreachable", message, { cause });
  }
}

const BROKEN = new Set(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET", "HPE_INVALID_EOF_STATE"]);

/**
 * One exchange on the bare dispatcher: no body stream is built, which costs more than parsing a small object.
 * `onEnd` is called once, when the connection is not used any more; that may be after the promise settled.
 * @throws KonvergeError `kube_timeout` or `kube_unreachable`
 * @throws the signal's reason when aborted
 */
export function exchange(
  dispatcher: Dispatcher,
  request: HttpRequest,
  onEnd: () => void,
): Promise<HttpAnswer> {
  const { signal, deadlineMs } = request;
  if (signal?.aborted === true) {
    onEnd();
    return Promise.reject(ensureError(signal.reason));
  }
  return new Promise((resolve, reject) => {
    let controller: Dispatcher.DispatchController | undefined;
    let given: { readonly reason: unknown } | undefined;
    let status = 0;
    let headers: HttpAnswer["headers"] = {};
    const chunks: Buffer[] = [];

    const giveUp = (reason: unknown) => {
      if (given !== undefined) return;
      given = { reason };
      settle();
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the reason is the caller's own
      reject(reason);
      controller?.abort(ensureError(reason));
    };
    const onAbort = () => giveUp(signal?.reason);
    const timer = setTimeout(
      () =>
        giveUp(
          new KonvergeError(
            "kube_timeout",
            `${origin(request)} did not answer within ${deadlineMs} ms`,
          ),
        ),
      deadlineMs,
    );
    const settle = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    };
    signal?.addEventListener("abort", onAbort, { once: true });

    dispatcher.dispatch(
      {
        origin: request.origin,
        method: request.method,
        path: request.path,
        headers: request.headers,
        body: request.body ?? null,
        headersTimeout: 0,
        bodyTimeout: 0,
      },
      {
        onRequestStart(started) {
          controller = started;
          // Given up while it waited for its connection: never send it.
          if (given !== undefined) started.abort(ensureError(given.reason));
        },
        onResponseStart(_controller, statusCode, responseHeaders) {
          status = statusCode;
          headers = responseHeaders;
        },
        onResponseData(_controller, chunk) {
          chunks.push(chunk);
        },
        onResponseEnd() {
          onEnd();
          settle();
          const [only] = chunks;
          const body = chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks);
          resolve({ status, headers, body: body.toString("utf8") });
        },
        onResponseError(_controller, error) {
          onEnd();
          settle();
          if (given === undefined) reject(networkError(request, error));
        },
      },
    );
  });
}

/** Turns what undici throws into ours. */
export function networkError(
  request: Pick<HttpRequest, "origin" | "method">,
  thrown: unknown,
): KonvergeError {
  const error = ensureError(thrown);
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  const message = `${origin(request)} cannot be reached: ${error.message || code}`;
  if (BROKEN.has(code)) return new ConnectionBroken(message, error);
  return new KonvergeError("kube_unreachable", message, { cause: error });
}

function origin(request: Pick<HttpRequest, "origin">): string {
  return `API server ${request.origin}`;
}
