import { KonvergeError } from "./errors.ts";

/** Milliseconds, or text such as `250ms`, `30s`, `10m`, `24h`, `7d`. */
export type Duration = number | `${number}${"ms" | "s" | "m" | "h" | "d"}`;

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** About 100,000 years. A duration of this length still ends at a valid Date. */
const MAX_DAYS = 36_500_000;

/** Returns milliseconds. @throws KonvergeError `invalid_config` for an invalid, negative, infinite or too long duration */
export function toMs(duration: Duration, field: string): number {
  const match =
    typeof duration === "string" ? /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(duration) : null;
  const ms =
    typeof duration === "number"
      ? duration
      : Number(match?.[1]) * (UNIT_MS[match?.[2] ?? ""] ?? NaN);
  if (!(ms >= 0 && Number.isFinite(ms))) {
    throw new KonvergeError(
      "invalid_config",
      `${field} "${duration}" is not a duration; write milliseconds or text such as "30s"`,
    );
  }
  if (ms > MAX_DAYS * 86_400_000) {
    throw new KonvergeError(
      "invalid_config",
      `${field} "${duration}" is too long; write at most "${MAX_DAYS}d"`,
    );
  }
  return ms;
}
