/** Returns a time in ISO 8601, in UTC with milliseconds. `undefined` stays `undefined`. */
export function isoTime(ms: number): string;
export function isoTime(ms: number | undefined): string | undefined;
export function isoTime(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : new Date(ms).toISOString();
}
