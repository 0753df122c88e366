import type { Problem } from "@konverge/contracts";

/** An invalid field, as a JSON pointer into the request; the detail has the fix. */
export type ProblemIssue = NonNullable<Problem["errors"]>[number];

/**
 * The error of this client. `code` is stable (docs/errors.md). The client itself creates three codes: `api_unreachable` (no
 * response), `unexpected_response` (a response that is not from the API) and `wait_timeout`.
 */
export class ProblemError extends Error {
  override readonly name = "ProblemError";
  readonly code: string;
  /** HTTP status; 0 without a response. */
  readonly status: number;
  readonly title: string;
  readonly errors: readonly ProblemIssue[];
  /** Minimum delay of a retry, in ms. */
  readonly retryAfterMs: number | undefined;

  constructor(
    problem: Pick<Problem, "code" | "status" | "title" | "detail"> &
      Partial<Pick<Problem, "errors">> & { readonly retryAfterMs?: number | undefined },
    cause?: unknown,
  ) {
    super(problem.detail, cause === undefined ? undefined : { cause });
    this.code = problem.code;
    this.status = problem.status;
    this.title = problem.title;
    this.errors = problem.errors ?? [];
    this.retryAfterMs = problem.retryAfterMs;
  }
}

/** Converts an error response, whose body has been read. */
export function readProblem(response: Response, text: string): ProblemError {
  const { status } = response;
  const retryAfterMs = parseRetryAfter(response.headers.get("retry-after"));
  const parsed = parseJson(text);
  if (isProblem(parsed)) {
    return new ProblemError({
      ...parsed,
      status,
      retryAfterMs: parsed.retryAfterMs ?? retryAfterMs,
    });
  }
  return unexpected(status, `has status ${status} and no problem document`, retryAfterMs);
}

/** Creates the error for a response of a proxy or login page. */
export function unexpected(status: number, what: string, retryAfterMs?: number): ProblemError {
  return new ProblemError({
    code: "unexpected_response",
    status,
    title: "The response is not from a Konverge API",
    detail: `the response ${what}; check the server URL and proxies`,
    retryAfterMs,
  });
}

/** Undefined for invalid JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function isProblem(value: unknown): value is Problem {
  return (
    typeof value === "object" &&
    value !== null &&
    "code" in value &&
    typeof value.code === "string" &&
    "detail" in value
  );
}

/** Seconds or a date (RFC 9110, 10.2.3). */
function parseRetryAfter(header: string | null): number | undefined {
  if (header === null) return undefined;
  const ms = /^\d+$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}
