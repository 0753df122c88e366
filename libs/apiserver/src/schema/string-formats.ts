import { isIP } from "node:net";

/** The string formats that are checked; others are informative. The real server checks about twenty more. */
const FORMATS: Readonly<Record<string, (value: string) => boolean>> = {
  "date-time": (value) =>
    /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/.test(value),
  date: (value) => /^\d{4}-\d\d-\d\d$/.test(value) && !Number.isNaN(Date.parse(value)),
  uuid: (value) =>
    /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i.test(value),
  ipv4: (value) => isIP(value) === 4,
  ipv6: (value) => isIP(value) === 6,
  email: (value) => /^[^\s@]+@[^\s@]+$/.test(value),
  byte: (value) => /^[A-Za-z0-9+/]*={0,2}$/.test(value) && value.length % 4 === 0,
};

/**
 * Returns why a string does not match the format, with the real server's text; undefined if it does, or if the format
 * is not checked.
 */
export function formatError(format: string, value: string): string | undefined {
  const holds = FORMATS[format];
  if (holds === undefined || holds(value)) return undefined;
  return `must be of type ${format}: ${JSON.stringify(value)}`;
}
