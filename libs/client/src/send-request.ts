import { parseJson, ProblemError, readProblem, unexpected } from "./problem-error.ts";

/** How often and how patiently is tried again. */
export interface RetryOptions {
  /** Tries after the first one. 0 tells every hiccup; many hide an outage for minutes. Default 4. */
  readonly retries?: number;
  /** Bound of the first delay in ms; it doubles per try and the delay is drawn from 0 to it. Default 200. */
  readonly baseMs?: number;
  /** Longest delay in ms. A server that asks for more than this is not asked again. Default 10,000. */
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
  /** Below the server's address, encoded. */
  readonly path: string;
  readonly query?: Readonly<Record<string, unknown>> | undefined;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Of what changes something. Default: a random one, the same over all tries. */
  readonly idempotencyKey?: string | undefined;
  /** The server may take so much longer, in ms. */
  readonly patienceMs?: number;
  readonly signal?: AbortSignal | undefined;
}

export interface Sender {
  /** The answer's JSON. @throws ProblemError, or what `signal` was aborted with */
  readonly send: <Answer>(call: Call) => Promise<Answer>;
  /** The answer as it comes, tried once. @throws ProblemError, or what `signal` was aborted with */
  readonly open: (call: Call) => Promise<Response>;
}

const AGAIN: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/**
 * Sends calls, and again when no answer came or the server says so. What changes something carries an Idempotency-Key, the
 * same each time, so that it happens once. Delays have full jitter; a Retry-After is a floor under them, so that clients
 * do not come back all at once.
 */
export function createSender(options: SenderOptions): Sender {
  const { retry, random, sleep, timeoutMs, token } = options;
  const base = options.server.replace(/\/+$/, "");

  const requestOf = (call: Call, signal: AbortSignal): Request => {
    const { method = "GET", path, query = {}, body, idempotencyKey } = call;
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) search.set(name, String(value));
    }
    const text = search.size === 0 ? "" : `?${search.toString()}`;
    return new Request(`${base}${path}${text}`, {
      method,
      headers: {
        accept: "application/json",
        ...options.headers,
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey }),
        ...call.headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal,
    });
  };
  /** No answer becomes an error of ours; an abort of the caller stays what the caller made it. */
  const reach = async <T>(call: Call, work: () => Promise<T>): Promise<T> => {
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
          detail: `no answer from ${base}: ${reasonOf(error)}`,
        },
        error,
      );
    }
  };
  const once = async <Answer>(call: Call): Promise<Answer> => {
    const limit = AbortSignal.timeout(timeoutMs + (call.patienceMs ?? 0));
    const signal = call.signal === undefined ? limit : AbortSignal.any([call.signal, limit]);
    return await reach(call, async () => {
      const response = await options.fetch(requestOf(call, signal));
      const text = await response.text();
      if (!response.ok) throw readProblem(response, text);
      if (response.status === 204) return undefined as Answer;
      const answer = parseJson(text);
      if (answer === undefined) throw unexpected(response.status, "no JSON");
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

/** Undefined when trying again cannot help, or when the server asks for more patience than there is. */
export function delayOf(
  error: unknown,
  tried: number,
  { baseMs, capMs }: Required<RetryOptions>,
  random: () => number,
): number | undefined {
  if (!(error instanceof ProblemError)) return undefined;
  // In flight: our own earlier try is still at work, and its answer will be replayed.
  const again =
    error.status === 0 || AGAIN.has(error.status) || error.code === "idempotency_in_flight";
  const floorMs = error.retryAfterMs ?? 0;
  if (!again || floorMs > capMs) return undefined;
  return floorMs + random() * Math.min(capMs, baseMs * 2 ** tried);
}

/** Not `randomUUID`, which browsers have on secure origins only. */
function randomKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}

/** `fetch failed` alone tells nobody anything; Node says why in the cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === "TimeoutError") return "it took too long";
  const { cause, message } = error;
  return cause instanceof Error && cause.message !== "" ? cause.message : message;
}
