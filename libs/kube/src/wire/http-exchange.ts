import { ensureError, KonvergeError } from "@konverge/core";
import type { Dispatcher } from "undici";
import type { HttpAnswer } from "../contract/http-answer.ts";
import { ConnectionBroken } from "../errors/connection-broken.ts";
import type { CallDispatcher } from "./connection-pool.ts";

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

const BROKEN = new Set(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET", "HPE_INVALID_EOF_STATE"]);

/**
 * Opens a dispatcher and sends one request on it, without a stream: a body stream would cost more than parsing a small object.
 * `onEnd` is called once, when the connection is free again; that may be after the promise settled.
 * @throws KonvergeError `kube_timeout` or `kube_unreachable`
 * @throws the signal's reason when aborted
 */
export function exchange(
  open: () => CallDispatcher,
  request: HttpRequest,
  onEnd: () => void,
): Promise<HttpAnswer> {
  if (request.signal?.aborted === true) {
    onEnd();
    return Promise.reject(ensureError(request.signal.reason));
  }
  const pending = new Exchange(request, onEnd);
  const { origin, method, path, headers, body = null } = request;
  try {
    open().dispatch(
      { origin, method, path, headers, body, headersTimeout: 0, bodyTimeout: 0 },
      pending,
    );
  } catch (error) {
    pending.fail(ensureError(error));
  }
  return pending.answer;
}

class Exchange implements Dispatcher.DispatchHandler {
  readonly #request: HttpRequest;
  readonly #onEnd: () => void;
  readonly #answer: PromiseWithResolvers<HttpAnswer> = Promise.withResolvers<HttpAnswer>();
  readonly #timer: NodeJS.Timeout;
  readonly #onAbort: () => void;
  readonly #chunks: Buffer[] = [];
  #controller: Dispatcher.DispatchController | undefined;
  #aborted: { readonly reason: unknown } | undefined;
  #hasEnded = false;
  #status = 0;
  #headers: HttpAnswer["headers"] = {};

  constructor(request: HttpRequest, onEnd: () => void) {
    const { signal, deadlineMs } = request;
    this.#request = request;
    this.#onEnd = onEnd;
    this.#timer = setTimeout(() => {
      const message = `${nameServer(request)} did not respond within ${deadlineMs} ms`;
      this.#abort(new KonvergeError("kube_timeout", message));
    }, deadlineMs);
    this.#onAbort = () => this.#abort(signal?.reason);
    signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  get answer(): Promise<HttpAnswer> {
    return this.#answer.promise;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // Aborted while it waited for its connection: never send it.
    if (this.#aborted !== undefined) controller.abort(ensureError(this.#aborted.reason));
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: HttpAnswer["headers"],
  ): void {
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    this.#end();
    try {
      const body = this.#readBody();
      this.#answer.resolve({ status: this.#status, headers: this.#headers, body });
    } catch (error) {
      const bytes = this.#chunks.reduce((sum, chunk) => sum + chunk.length, 0);
      const message = `${nameServer(this.#request)} returned ${bytes} bytes, more than one string can hold; read in pages`;
      this.#answer.reject(
        new KonvergeError("kube_unreachable", message, { cause: ensureError(error) }),
      );
    }
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.fail(error);
  }

  fail(error: Error): void {
    this.#end();
    if (this.#aborted === undefined) this.#answer.reject(networkError(this.#request, error));
  }

  #abort(reason: unknown): void {
    if (this.#aborted !== undefined) return;
    this.#aborted = { reason };
    this.#settle();
    this.#answer.reject(reason);
    this.#controller?.abort(ensureError(reason));
  }

  #readBody(): string {
    const [first] = this.#chunks;
    const body = this.#chunks.length === 1 && first ? first : Buffer.concat(this.#chunks);
    return body.toString("utf8");
  }

  /** The dispatcher reports an error of the end of a response as another end. */
  #end(): void {
    if (!this.#hasEnded) this.#onEnd();
    this.#hasEnded = true;
    this.#settle();
  }

  #settle(): void {
    clearTimeout(this.#timer);
    this.#request.signal?.removeEventListener("abort", this.#onAbort);
  }
}

/** Converts an error of undici. */
export function networkError(
  request: Pick<HttpRequest, "origin" | "method">,
  thrown: unknown,
): KonvergeError {
  const error = ensureError(thrown);
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  const message = `${nameServer(request)} cannot be reached: ${error.message || code}`;
  if (BROKEN.has(code)) return new ConnectionBroken(message, error);
  return new KonvergeError("kube_unreachable", message, { cause: error });
}

function nameServer(request: Pick<HttpRequest, "origin">): string {
  return `API server ${request.origin}`;
}
