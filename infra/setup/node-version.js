/** The first version of Node that runs TypeScript without a warning. */
export const OLDEST_NODE = "24.12.0";

/**
 * @param {string} version `v26.10.0`, `26.10.0` or a pre-release such as `27.0.0-nightly2026`
 * @returns {readonly number[] | undefined} major, minor, patch
 */
export function parseVersion(version) {
  const found = /^v?(\d+)\.(\d+)\.(\d+)/.exec(version.trim());
  return found?.slice(1).map(Number);
}

/** @param {string} version @param {string} [oldest] @returns {boolean} also false for an invalid version */
export function isAtLeast(version, oldest = OLDEST_NODE) {
  const have = parseVersion(version);
  const need = parseVersion(oldest);
  if (have === undefined || need === undefined) return false;
  for (const [index, wanted] of need.entries()) {
    const difference = (have[index] ?? 0) - wanted;
    if (difference !== 0) return difference > 0;
  }
  return true;
}

/**
 * Returns the first Node that is new enough.
 * @param {readonly { path: string, version: string }[]} candidates in order of preference
 * @returns {{ path: string, version: string } | undefined}
 */
export function chooseNode(candidates) {
  return candidates.find(({ version }) => isAtLeast(version));
}
