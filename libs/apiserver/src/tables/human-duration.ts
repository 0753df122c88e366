const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

/** Formats a duration as kubectl does, with at most two units. */
export function humanDuration(ms: number): string {
  if (ms < -SECOND) return "<invalid>";
  if (ms < 0) return "0s";
  const whole = (unitMs: number) => Math.floor(ms / unitMs);
  const withRest = (unitMs: number, unit: string, restMs: number, rest: string) => {
    const more = Math.floor((ms % unitMs) / restMs);
    return `${whole(unitMs)}${unit}${more === 0 ? "" : `${more}${rest}`}`;
  };
  if (ms < 2 * MINUTE) return `${whole(SECOND)}s`;
  if (ms < 10 * MINUTE) return withRest(MINUTE, "m", SECOND, "s");
  if (ms < 3 * HOUR) return `${whole(MINUTE)}m`;
  if (ms < 8 * HOUR) return withRest(HOUR, "h", MINUTE, "m");
  if (ms < 2 * DAY) return `${whole(HOUR)}h`;
  if (ms < 8 * DAY) return withRest(DAY, "d", HOUR, "h");
  if (ms < 2 * YEAR) return `${whole(DAY)}d`;
  if (ms < 8 * YEAR) return withRest(YEAR, "y", DAY, "d");
  return `${whole(YEAR)}y`;
}
