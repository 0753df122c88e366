/** The parent of a span, as in W3C Trace Context. */
export interface TraceParent {
  /** 32 hex digits. */
  readonly traceId: string;
  /** 16 hex digits. */
  readonly spanId: string;
  /** 8 bits; the lowest marks a sampled trace. */
  readonly flags: number;
}

/** Later versions may append fields; `ff` and all-zero ids are invalid. */
const TRACEPARENT =
  /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(-.*)?$/;
/** Longer headers are invalid. */
const MAX_CHARS = 200;

/** Parses a `traceparent`. Returns undefined for an invalid one, which the recommendation treats as absent. */
export function parseTraceparent(text: string): TraceParent | undefined {
  const [, version, traceId, spanId, flags, rest] =
    text.length > MAX_CHARS ? [] : (TRACEPARENT.exec(text) ?? []);
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  if (version === "00" && rest !== undefined) return undefined;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) };
}

export function formatTraceparent({ traceId, spanId, flags }: TraceParent): string {
  return `00-${traceId}-${spanId}-${flags.toString(16).padStart(2, "0")}`;
}
