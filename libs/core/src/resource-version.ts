const COMPARABLE = /^[1-9]\d*$/;

/**
 * Compares two resourceVersions of a resource. Negative if `left` is older, undefined if they are not comparable. Only digits
 * without a leading zero compare: a shorter version is older, equal lengths compare as text, up to 128 bits (KEP-5504).
 */
export function compareResourceVersions(left: string, right: string): number | undefined {
  if (!COMPARABLE.test(left) || !COMPARABLE.test(right)) return undefined;
  if (left.length !== right.length) return left.length - right.length;
  if (left === right) return 0;
  return left < right ? -1 : 1;
}
