import { KonvergeError } from "@konverge/core";
import { errors } from "undici";
import type { HttpAnswer } from "../contract/http-answer.ts";
import type { CallDispatcher } from "./connection-pool.ts";
import { networkError, type HttpRequest } from "./http-exchange.ts";

export type OpenedStream =
  | { readonly kind: "stream"; readonly chunks: AsyncIterable<Uint8Array> }
  | { readonly kind: "refused"; readonly answer: HttpAnswer };

/** A stream was aborted because it had no data for too long. */
export class StreamSilent extends KonvergeError {
  constructor(origin: string, silentMs: number, cause: Error) {
    super("kube_unreachable", `API server ${origin} sent nothing for ${silentMs} ms`, { cause });
  }
}

export interface StreamOptions {
  /** A stream without data for this long is broken. */
  readonly silentMs: number;
  /** Ends the stream, like the request's own signal. */
  readonly closed: AbortSignal;
}

/**
 * Opens a streaming response. The request's `deadlineMs` covers only its start.
 * @throws KonvergeError `kube_timeout` or `kube_unreachable`, also while reading the chunks
 * @throws the signal's reason when aborted
 */
export async function openStream(
  dispatcher: CallDispatcher,
  request: HttpRequest,
  { silentMs, closed }: StreamOptions,
): Promise<OpenedStream> {
  const { origin, method, path, headers, deadlineMs } = request;
  const outside = request.signal === undefined ? closed : AbortSignal.any([closed, request.signal]);
  outside.throwIfAborted();
  const late = new AbortController();
  const timer = setTimeout(
    () =>
      late.abort(
        new KonvergeError(
          "kube_timeout",
          `API server ${origin} sent no response headers within ${deadlineMs} ms`,
        ),
      ),
    deadlineMs,
  );
  const translate = (error: unknown): unknown => {
    if (outside.aborted) return outside.reason;
    if (late.signal.aborted) return late.signal.reason;
    const isSilent = error instanceof errors.BodyTimeoutError;
    return isSilent ? new StreamSilent(origin, silentMs, error) : networkError(request, error);
  };
  try {
    const {
      statusCode,
      headers: answered,
      body,
    } = await dispatcher.request({
      origin,
      method,
      path,
      headers,
      signal: AbortSignal.any([outside, late.signal]),
      bodyTimeout: silentMs,
    });
    const isStream =
      statusCode === 200 && String(answered["content-type"]).startsWith("application/json");
    if (isStream) return { kind: "stream", chunks: read(body, translate) };
    return {
      kind: "refused",
      answer: { status: statusCode, headers: answered, body: await body.text() },
    };
  } catch (error) {
    throw translate(error);
  } finally {
    clearTimeout(timer);
  }
}

async function* read(
  chunks: AsyncIterable<Uint8Array>,
  translate: (error: unknown) => unknown,
): AsyncIterable<Uint8Array> {
  try {
    for await (const chunk of chunks) yield chunk;
  } catch (error) {
    throw translate(error);
  }
}
