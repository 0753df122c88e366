const COMPARABLE = /^[1-9]\d*$/;

/**
 * Compares two resourceVersions of the same resource: negative when `left` is older, or undefined when they cannot be
 * compared. Only digits without a leading zero compare; shorter is older, equal length compares as text, since they
 * may have up to 128 bits (KEP-5504).
 */
export function compareResourceVersions(left: string, right: string): number | undefined {
  if (!COMPARABLE.test(left) || !COMPARABLE.test(right)) return undefined;
  if (left.length !== right.length) return left.length - right.length;
  if (left === right) return 0;
  return left < right ? -1 : 1;
}
