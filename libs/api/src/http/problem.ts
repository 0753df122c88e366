import type { Problem } from "@konverge/contracts";
import { defined, ERRORS, isKonvergeError, KonvergeError } from "@konverge/core";
import type { Context } from "hono";
import { ERROR_PAGE } from "./error-page.ts";
import { jsonResponse } from "./json-response.ts";

/** The media type of every error (RFC 9457). */
export const PROBLEM = "application/problem+json";

/** Answers an error as `application/problem+json` (RFC 9457), according to the table of error codes. */
export function answerProblem(context: Context, thrown: unknown): Response {
  const error = toKonvergeError(thrown);
  const { httpStatus } = ERRORS[error.code];
  const problem: Problem = {
    type: `${ERROR_PAGE}#${error.code}`,
    instance: context.req.path,
    ...problemOf(error),
  };
  const headers: Record<string, string> = { "content-type": PROBLEM };
  if (httpStatus === 503 || httpStatus === 429 || error.code === "idempotency_in_flight")
    headers["retry-after"] = String(Math.ceil((error.retryAfterMs ?? 1_000) / 1_000));
  if (httpStatus === 401) headers["www-authenticate"] = 'Bearer realm="konverge"';
  return jsonResponse(problem, httpStatus, headers);
}

/** Returns the problem of an error, without its type and instance. */
export function problemOf(error: KonvergeError): Omit<Problem, "type" | "instance"> {
  const { title, httpStatus } = ERRORS[error.code];
  return {
    title,
    status: httpStatus,
    detail: error.message,
    code: error.code,
    ...defined({ retryAfterMs: error.retryAfterMs }),
    ...(error.issues.length === 0 ? {} : { errors: [...error.issues] }),
  };
}

function toKonvergeError(thrown: unknown): KonvergeError {
  if (isKonvergeError(thrown)) return thrown;
  // Internal errors are logged; callers receive no stack and no foreign text.
  return new KonvergeError("internal", "see the log of the API process", { cause: thrown });
}
