/** A stretch of time, in Unix ms. */
export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/** A shortened wait on a scale. */
interface Cut extends Span {
  /** Position and width, from 0 to 1. */
  readonly at: number;
  readonly width: number;
}

/** Places instants between 0 and 1. */
export interface Scale {
  readonly place: (atMs: number) => number;
  readonly cuts: readonly Cut[];
}

/** The width of a shortened wait, as a part of the time with work. */
const CUT_SHARE = 0.12;
/** A wait is shortened if it is this many times longer than it would then be shown. */
const CUT_FROM = 2;

/** Returns a scale on which equal times have equal widths. */
export function evenScale({ fromMs, toMs }: Span): Scale {
  const spanMs = Math.max(1, toMs - fromMs);
  return { place: (atMs) => clamp((atMs - fromMs) / spanMs), cuts: [] };
}

/** Returns a scale on which long times without work are shortened, so that the work remains visible beside a wait of days. */
export function workScale(whole: Span, work: readonly Span[]): Scale {
  const busy = merge(work, whole);
  const busyMs = busy.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0);
  if (busyMs <= 0) return evenScale(whole);
  const cutMs = busyMs * CUT_SHARE;
  const parts: (Span & { readonly shownMs: number })[] = [];
  let atMs = whole.fromMs;
  for (const span of [...busy, { fromMs: whole.toMs, toMs: whole.toMs }]) {
    const idleMs = span.fromMs - atMs;
    if (idleMs > 0) {
      const shownMs = idleMs > CUT_FROM * cutMs ? cutMs : idleMs;
      parts.push({ fromMs: atMs, toMs: span.fromMs, shownMs });
    }
    parts.push({ ...span, shownMs: span.toMs - span.fromMs });
    atMs = span.toMs;
  }
  const totalMs = Math.max(
    1,
    parts.reduce((sum, { shownMs }) => sum + shownMs, 0),
  );
  let shownMs = 0;
  const starts = parts.map((part) => {
    const start = shownMs / totalMs;
    shownMs += part.shownMs;
    return { ...part, start, width: part.shownMs / totalMs };
  });
  return {
    place: (at) => {
      const part = starts.find(({ toMs }) => at <= toMs) ?? starts.at(-1);
      if (part === undefined) return 1;
      const lengthMs = part.toMs - part.fromMs;
      const within = lengthMs <= 0 ? 0 : clamp((at - part.fromMs) / lengthMs);
      return clamp(part.start + within * part.width);
    },
    cuts: starts
      .filter((part) => part.shownMs < part.toMs - part.fromMs)
      .map(({ fromMs, toMs, start, width }) => ({ fromMs, toMs, at: start, width })),
  };
}

/** Returns the union of spans within `whole`, in order. */
function merge(spans: readonly Span[], whole: Span): Span[] {
  const sorted = spans
    .map(({ fromMs, toMs }) => ({
      fromMs: Math.max(whole.fromMs, fromMs),
      toMs: Math.min(whole.toMs, toMs),
    }))
    .filter(({ fromMs, toMs }) => toMs >= fromMs)
    .toSorted((one, other) => one.fromMs - other.fromMs);
  const merged: { fromMs: number; toMs: number }[] = [];
  for (const span of sorted) {
    const last = merged.at(-1);
    if (last !== undefined && span.fromMs <= last.toMs) last.toMs = Math.max(last.toMs, span.toMs);
    else merged.push({ ...span });
  }
  return merged;
}

function clamp(share: number): number {
  return Math.min(1, Math.max(0, share));
}
