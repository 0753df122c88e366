/** Codes that only repeat that the attempt failed. */
const PLAIN_CODES: ReadonlySet<string> = new Set(["retry", "terminal", "Error"]);

/** The code of an error before its message, unless it adds nothing. */
export function ErrorCode({ code, look }: { readonly code: string; readonly look?: string }) {
  return PLAIN_CODES.has(code) ? null : <code class={look}>{code} </code>;
}
