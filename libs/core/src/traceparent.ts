/** Where a span belongs, as W3C Trace Context passes it on. */
export interface TraceParent {
  /** 32 hex digits. */
  readonly traceId: string;
  /** 16 hex digits. */
  readonly spanId: string;
  /** 8 bits; the lowest says that the trace is sampled. */
  readonly flags: number;
}

/** Later versions may put more behind; `ff`, and ids of zeros, are invalid. */
const TRACEPARENT =
  /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(-.*)?$/;
/** Longer is nobody's header. */
const MAX_CHARS = 200;

/** Undefined for what is no `traceparent`: the recommendation says to go on as if there were none. */
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
