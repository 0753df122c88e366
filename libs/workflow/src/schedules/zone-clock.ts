/** A change of a zone's offset from UTC. */
interface Shift {
  /** First moment with the new offset. */
  readonly atMs: number;
  readonly beforeMs: number;
  readonly afterMs: number;
}

/** The clock of a time zone. A clock time is given as the epoch ms at which a clock in UTC shows it. */
export interface ZoneClock {
  /** Returns the clock time at a moment. */
  clockAt(atMs: number): number;
  /**
   * Returns the first moment at which the clock shows a time or a later one. For a time that the clock skips, that is the
   * first moment after the gap.
   */
  momentOf(clockMs: number): number;
  /** Returns the shift that makes the clock show the time of this moment twice; undefined if it shows it once. */
  repeatAt(atMs: number): Shift | undefined;
}

const SECOND = 1_000;
const DAY = 86_400_000;

/** @throws RangeError for an invalid time zone */
export function zoneClock(timeZone: string): ZoneClock {
  const format = new Intl.DateTimeFormat("en", { timeZone, timeZoneName: "longOffset" });
  const offsetAt = (atMs: number) => {
    const part = format.formatToParts(atMs).find(({ type }) => type === "timeZoneName");
    return parseOffset(part?.value ?? "");
  };
  /** Offsets change at full seconds, and at most once in two days. */
  const shiftNear = (aroundMs: number): Shift | undefined => {
    let [low, high] = [aroundMs - DAY, aroundMs + DAY].map((ms) => Math.floor(ms / SECOND)) as [
      number,
      number,
    ];
    const [beforeMs, afterMs] = [offsetAt(low * SECOND), offsetAt(high * SECOND)];
    if (beforeMs === afterMs) return undefined;
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (offsetAt(middle * SECOND) === beforeMs) low = middle;
      else high = middle;
    }
    return { atMs: high * SECOND, beforeMs, afterMs };
  };
  const clockAt = (atMs: number) => atMs + offsetAt(atMs);
  return {
    clockAt,
    momentOf(clockMs) {
      const shift = shiftNear(clockMs);
      if (shift === undefined) return clockMs - offsetAt(clockMs);
      const { atMs, beforeMs, afterMs } = shift;
      const ms = clockMs - beforeMs;
      return ms < atMs ? ms : Math.max(atMs, clockMs - afterMs);
    },
    repeatAt(atMs) {
      const shift = shiftNear(atMs);
      if (shift === undefined) return undefined;
      const clockMs = clockAt(atMs);
      const isRepeated =
        clockMs >= shift.atMs + shift.afterMs && clockMs < shift.atMs + shift.beforeMs;
      return isRepeated ? shift : undefined;
    },
  };
}

/** Parses `GMT`, `GMT+05:30` or `GMT-00:44:30` to ms. */
function parseOffset(text: string): number {
  const [, sign, ...parts] = /^GMT(?:([+-])(\d+):(\d+)(?::(\d+))?)?$/.exec(text) ?? [];
  const [hours, minutes, seconds] = parts.map((part) => Number(part ?? 0)) as [
    number,
    number,
    number,
  ];
  const ms = ((hours * 60 + minutes) * 60 + seconds) * SECOND;
  if (sign === undefined) return 0;
  return sign === "-" ? -ms : ms;
}
