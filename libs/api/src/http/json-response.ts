/** JSON is no page: of all the headers that protect one, this alone means something to it. */
const HEADERS = {
  "content-type": "application/json",
  "x-content-type-options": "nosniff",
} as const;

/** Marks a response as one of ours. A property, as a WeakSet costs the garbage collector more than all that it saves. */
const MADE: unique symbol = Symbol("made by jsonResponse");

type Marked = Response & { [MADE]?: true };

/**
 * JSON as the server sends it. The headers are a plain object on purpose: it is handed on as it is, while each `Headers` that is made,
 * filled and read again costs a tenth of what a request takes.
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

/** True for one of the above, which needs no more headers; to look at them would mean to make them. */
export function isJsonResponse(response: Marked): boolean {
  return response[MADE] === true;
}
