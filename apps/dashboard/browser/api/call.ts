import type { Problem } from "@konverge/contracts";
import { needsLogin } from "../state/session.ts";

/** A problem that the server reported, or that the browser detected. */
export type Trouble = Pick<Problem, "code" | "title" | "detail" | "errors">;

/** A response without success, or a missing response. */
export class CallError extends Error {
  override readonly name = "CallError";
  readonly trouble: Trouble;
  constructor(trouble: Trouble) {
    super(trouble.detail);
    this.trouble = trouble;
  }
}

export interface CallOptions {
  readonly method?: "GET" | "POST" | "PUT" | "DELETE";
  readonly body?: unknown;
  /** How long the server may wait for a result, in s. Default: it answers at once. */
  readonly waitS?: number;
  readonly signal?: AbortSignal;
}

/** Longest time without a response, in ms, in addition to `waitS`. */
const TIMEOUT_MS = 10_000;

/** Sends a request to `v1/...`, relative to the base path. @throws CallError */
export async function call<T>(path: string, options: CallOptions = {}): Promise<T> {
  const { method = "GET", body, waitS, signal } = options;
  const timeout = AbortSignal.timeout(TIMEOUT_MS + (waitS ?? 0) * 1_000);
  let response: Response;
  try {
    response = await fetch(new URL(path, document.baseURI), {
      method,
      headers: {
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(waitS === undefined ? {} : { prefer: `wait=${waitS}` }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
    });
  } catch (error) {
    if (signal?.aborted === true) throw error;
    const what = timeout.aborted
      ? `The API did not respond within ${TIMEOUT_MS / 1_000} s.`
      : "The API does not respond.";
    const detail = `${what} The data shown may be outdated.`;
    throw new CallError({ code: "unreachable", title: "No connection", detail });
  }
  if (response.status === 401) needsLogin.value = true;
  if (!response.ok) throw new CallError(await troubleOf(response));
  return response.status === 204 ? (undefined as T) : ((await response.json()) as T);
}

async function troubleOf(response: Response): Promise<Trouble> {
  const text = await response.text();
  try {
    return JSON.parse(text) as Trouble;
  } catch {
    // A proxy's error page is not a problem document.
    const { status, statusText } = response;
    return { code: String(status), title: `${status} ${statusText}`, detail: text.slice(0, 300) };
  }
}
