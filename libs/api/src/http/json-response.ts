/** The only security headers that apply to JSON. */
const HEADERS = {
  "content-type": "application/json",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
} as const;

/** Marks the responses of `jsonResponse`. A WeakSet would cost more garbage collection than it saves. */
const MADE: unique symbol = Symbol("made by jsonResponse");

type Marked = Response & { [MADE]?: true };

/**
 * Returns a JSON response. The headers are a plain object, because a `Headers` instance costs a tenth of the time of a
 * request.
 */
export function jsonResponse(
  value: unknown,
  status: number,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const response: Marked = new Response(JSON.stringify(value), {
    status,
    headers: { ...HEADERS, ...headers },
  });
  response[MADE] = true;
  return response;
}

/** True for a response of `jsonResponse`, which needs no more headers. Reading them would create a `Headers`. */
export function isJsonResponse(response: Marked): boolean {
  return response[MADE] === true;
}
