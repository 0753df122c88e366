import { defined } from "@konverge/core";
import { parseJson, ProblemError, readProblem, unexpected } from "./problem-error.ts";

/** The retries of a call. */
export interface RetryOptions {
  /** Tries after the first one. 0 reports every transient error; many hide an outage for minutes. Default 4. */
  readonly retries?: number;
  /** Maximum of the first delay in ms. It doubles per try, and the delay is random up to it. Default 200. */
  readonly baseMs?: number;
  /** Longest delay in ms. A longer Retry-After ends the retries. Default 10,000. */
  readonly capMs?: number;
}

export interface SenderOptions {
  readonly server: string;
  readonly token?: string | undefined;
  readonly fetch: (request: Request) => Promise<Response>;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly timeoutMs: number;
  readonly retry: Required<RetryOptions>;
  readonly random: () => number;
  readonly sleep: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
}

export interface Call {
  readonly method?: "GET" | "POST" | "PUT" | "DELETE";
  /** Path below the server URL, encoded. */
  readonly path: string;
  readonly query?: Readonly<Record<string, unknown>> | undefined;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Key of a change. Default: a random key, the same for all tries. */
  readonly idempotencyKey?: string | undefined;
  /** Additional time for the response, in ms. */
  readonly patienceMs?: number;
  readonly signal?: AbortSignal | undefined;
}

export interface Sender {
  /** Returns the JSON of the response. @throws ProblemError, or the reason of `signal` */
  readonly send: <Answer>(call: Call) => Promise<Answer>;
  /** Returns the response of a single try. @throws ProblemError, or the reason of `signal` */
  readonly open: (call: Call) => Promise<Response>;
}

const AGAIN: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/**
 * Sends calls, and retries them without a response or on a temporary error. All tries of a change carry the same
 * Idempotency-Key, so it happens once. Delays have full jitter on top of Retry-After, so that clients do not retry together.
 */
export function createSender(options: SenderOptions): Sender {
  const { retry, random, sleep, timeoutMs, token } = options;
  const base = options.server.replace(/\/+$/, "");
  const ownHeaders = {
    accept: "application/json",
    ...options.headers,
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
  };
  const requestOf = (call: Call, signal: AbortSignal) => toRequest(call, base, ownHeaders, signal);
  const reach = <T>(call: Call, work: () => Promise<T>) => withUnreachable(call, base, work);
  const once = async <Answer>(call: Call): Promise<Answer> => {
    const limit = AbortSignal.timeout(timeoutMs + (call.patienceMs ?? 0));
    const signal = call.signal === undefined ? limit : AbortSignal.any([call.signal, limit]);
    return await reach(call, async () => {
      const response = await options.fetch(requestOf(call, signal));
      const text = await response.text();
      if (!response.ok) throw readProblem(response, text);
      if (response.status === 204) return undefined as Answer;
      const answer = parseJson(text);
      if (answer === undefined) throw unexpected(response.status, "is not JSON");
      return answer as Answer;
    });
  };

  return {
    async send<Answer>(given: Call): Promise<Answer> {
      const isRead = given.method === undefined || given.method === "GET";
      const call = isRead ? given : { idempotencyKey: randomKey(), ...given };
      for (let tried = 0; ; tried++) {
        call.signal?.throwIfAborted();
        try {
          return await once<Answer>(call);
        } catch (error) {
          const pause = tried < retry.retries ? delayOf(error, tried, retry, random) : undefined;
          if (pause === undefined) throw error;
          await sleep(pause, call.signal);
        }
      }
    },
    open(call) {
      return reach(call, async () => {
        const response = await options.fetch(
          requestOf(call, call.signal ?? new AbortController().signal),
        );
        if (response.ok) return response;
        throw readProblem(response, await response.text());
      });
    },
  };
}

function toRequest(
  { method = "GET", path, query = {}, body, idempotencyKey, headers }: Call,
  base: string,
  ownHeaders: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Request {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) search.set(name, String(value));
  }
  const text = search.size === 0 ? "" : `?${search.toString()}`;
  return new Request(`${base}${path}${text}`, {
    method,
    headers: {
      ...ownHeaders,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...defined({ "idempotency-key": idempotencyKey }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal,
  });
}

/** Converts a missing response to `api_unreachable`. An abort by the caller keeps its reason. */
async function withUnreachable<T>(call: Call, base: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ProblemError) throw error;
    call.signal?.throwIfAborted();
    throw new ProblemError(
      {
        code: "api_unreachable",
        status: 0,
        title: "The HTTP API cannot be reached",
        detail: `no response from ${base}: ${reasonOf(error)}`,
      },
      error,
    );
  }
}

/** Returns the delay of a retry; undefined if a retry cannot succeed or Retry-After is too long. */
export function delayOf(
  error: unknown,
  tried: number,
  { baseMs, capMs }: Required<RetryOptions>,
  random: () => number,
): number | undefined {
  if (!(error instanceof ProblemError)) return undefined;
  // In flight: an earlier try of this call is still running, and its response will be replayed.
  const again =
    error.status === 0 || AGAIN.has(error.status) || error.code === "idempotency_in_flight";
  const floorMs = error.retryAfterMs ?? 0;
  if (!again || floorMs > capMs) return undefined;
  return floorMs + random() * Math.min(capMs, baseMs * 2 ** tried);
}

/** Not `randomUUID`, which browsers offer only on secure origins. */
export function randomKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}

/** Node has the reason of `fetch failed` in the cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === "TimeoutError") return "timeout";
  const { cause, message } = error;
  return cause instanceof Error && cause.message !== "" ? cause.message : message;
}
