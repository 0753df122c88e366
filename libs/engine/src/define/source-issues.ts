import { isKonvergeError, toMs, type Duration, type ErrorIssue } from "@konverge/core";

const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
/** The maximum of setTimeout. */
const MAX_MS = 2 ** 31 - 1;

/** Returns the issues of the options that have one. */
export function issuesOf(details: Readonly<Record<string, string | undefined>>): ErrorIssue[] {
  return Object.entries(details).flatMap(([option, detail]) =>
    detail === undefined ? [] : [{ pointer: `/${option}`, detail: `${option}: ${detail}` }],
  );
}

export function nameIssue(name: unknown): string | undefined {
  return typeof name === "string" && NAME.test(name)
    ? undefined
    : `must be lower-case letters, digits and dashes, at most 63 (got ${JSON.stringify(name)})`;
}

export function functionIssue(value: unknown, form: string): string | undefined {
  return typeof value === "function" ? undefined : `must be a function ${form}`;
}

export function durationIssue(
  value: unknown,
  field: string,
  atLeastMs: number,
): string | undefined {
  try {
    const ms = toMs(value as Duration, field);
    return ms >= atLeastMs && ms <= MAX_MS
      ? undefined
      : `must be at least ${atLeastMs} ms and at most 24 days (got ${String(value)})`;
  } catch (error) {
    if (!isKonvergeError(error)) throw error;
    return `${String(value)} is not a duration; write milliseconds or text such as "30s"`;
  }
}
