import {
  defined,
  isKonvergeError,
  type CallPriority,
  type CallVerb,
  type Gate,
} from "@konverge/core";

export interface GuardedFetchOptions {
  /** Default `event`. */
  readonly priority?: CallPriority;
  /** Default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
}

const VERBS: Readonly<Record<string, CallVerb>> = {
  GET: "get",
  HEAD: "get",
  POST: "create",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};

/**
 * Returns a `fetch` that requests a token for each request and reports the result to the gate. Protects any HTTP API from a
 * fleet of processes. Redirects are returned, not followed, because each one is a request: pass `redirect: "follow"` in the
 * second argument to follow them without a token.
 * @throws KonvergeError `deferred` with `retryAfterMs` if the request was not sent, else the errors of `fetch`
 * @example
 * const guard = await createGuard({ redis: { url }, cluster: "api.example.com", workerId: `${process.pid}` });
 * const call = guardFetch(guard);
 * const response = await call("https://api.example.com/things", { signal: AbortSignal.timeout(5_000) });
 */
export function guardFetch(gate: Gate, options: GuardedFetchOptions = {}): typeof globalThis.fetch {
  const { priority = "event", fetch = globalThis.fetch } = options;
  return async (input, init) => {
    const method = (
      init?.method ?? (input instanceof Request ? input.method : "GET")
    ).toUpperCase();
    const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
    const call = { verb: VERBS[method] ?? "update", resource: "", priority } as const;
    const permit = await gate.admit(call, signal ? { signal } : {});
    try {
      const response = await fetch(input, { redirect: "manual", ...init });
      const retryAfterMs = readRetryAfter(response.headers.get("retry-after"));
      permit.settle({
        kind: "response",
        status: response.status,
        ...defined({ retryAfterMs }),
      });
      return response;
    } catch (error) {
      permit.settle({ kind: endOf(error) });
      throw error;
    }
  };
}

/** A timeout is a failure of the server; other aborts are not. */
function endOf(error: unknown): "timeout" | "aborted" | "network" {
  const name = error instanceof Error ? error.name : "";
  if (name === "TimeoutError" || (isKonvergeError(error) && error.code === "timed_out"))
    return "timeout";
  return name === "AbortError" ? "aborted" : "network";
}

/** Parses seconds only; a date would need synchronized clocks. */
function readRetryAfter(header: string | null): number | undefined {
  return header !== null && /^\d+$/.test(header.trim()) ? Number(header) * 1_000 : undefined;
}
