import { KonvergeError } from "@konverge/core";

/** The formats of the data in Redis that a version can use: it reads both and what lies between, and writes one of them. */
export interface Formats {
  readonly oldest: number;
  readonly newest: number;
}

/**
 * The formats of this version. A change of the layout of keys, hashes, records or texts in Redis raises `newest` by one and keeps
 * `oldest` one below it, so a version works beside the one before it. test/integration/formats/format-dumps.test.ts runs a dump of
 * every format that is read.
 */
export const FORMATS: Formats = { oldest: 1, newest: 1 };

/** The format of data without a stamp: it was written before stamps. */
export const UNSTAMPED = 1;

/** Returns the error with which a process refuses data of another format. */
export function formatIssue(
  cluster: string,
  stored: number,
  { oldest, newest }: Formats,
): KonvergeError | undefined {
  if (stored >= oldest && stored <= newest) return undefined;
  const range = oldest === newest ? `${newest}` : `${oldest} to ${newest}`;
  const fix =
    stored > newest
      ? "a newer version has converted it; use that version or a newer one"
      : `upgrade step by step: first to a version that uses format ${stored + 1}`;
  return new KonvergeError(
    "format_mismatch",
    `the data of cluster "${cluster}" in Redis has format ${stored}, but this version uses format ${range}; ${fix}`,
  );
}
