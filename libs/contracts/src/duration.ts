import { z } from "zod";

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Text such as `250ms`, `30s` or `10m`, parsed to milliseconds. */
export const duration = z
  .string()
  .regex(/^\d+(\.\d+)?(ms|s|m|h|d)$/, "must be a number and a unit, such as 30s, 10m or 250ms")
  .transform((text) => {
    const [, amount, unit] = /^([\d.]+)(\D+)$/.exec(text) ?? [];
    return Number(amount) * (UNIT_MS[unit ?? ""] ?? Number.NaN);
  });
