import type { Problem } from "@konverge/contracts";

/** What is wrong where, as a JSON pointer into what was sent; the detail names the cure. */
export type ProblemIssue = NonNullable<Problem["errors"]>[number];

/**
 * The one error of this client. `code` is stable (docs/errors.md). Three codes are the client's own: `api_unreachable`
 * (no answer at all), `unexpected_response` (something between us and the API answered) and `wait_timeout`.
 */
export class ProblemError extends Error {
  override readonly name = "ProblemError";
  readonly code: string;
  /** HTTP status; 0 when there was no answer. */
  readonly status: number;
  readonly title: string;
  readonly errors: readonly ProblemIssue[];
  /** Do not try again sooner than this, in ms. */
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

/** Makes an error of an answer that is no success. Its body has been read. */
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
  return unexpected(status, `${status} that is no problem of the API`, retryAfterMs);
}

/** A proxy or a login page spoke, not the API. */
export function unexpected(status: number, what: string, retryAfterMs?: number): ProblemError {
  return new ProblemError({
    code: "unexpected_response",
    status,
    title: "The response is not from a Konverge API",
    detail: `the answer is ${what}; check the server's address, and what stands between`,
    retryAfterMs,
  });
}

/** Undefined for what is no JSON. */
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
