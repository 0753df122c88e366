const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
] as const;

/** Formats an age in its largest unit, such as `5m`, or `in 5m` for a future time. `-o json` has the exact time. */
export function age(iso: string | undefined, nowMs: number = Date.now()): string {
  if (iso === undefined) return "-";
  const ms = nowMs - Date.parse(iso);
  if (Number.isNaN(ms)) return iso;
  const text = span(Math.abs(ms));
  return ms < -1_000 ? `in ${text}` : text;
}

/** Formats a duration, such as `850ms`, `12s`, `5m`, `3h` or `2d`. */
export function span(ms: number): string {
  const [unit, size] = UNITS.find(([, least]) => ms >= least) ?? ["ms", 1];
  return `${Math.round(ms / size)}${unit}`;
}

/** Formats a duration exactly, in its largest whole unit, such as `90s` or `1h`. */
export function wholeSpan(ms: number): string {
  const [unit, size] = UNITS.find(([, least]) => ms >= least && ms % least === 0) ?? ["ms", 1];
  return `${ms / size}${unit}`;
}
