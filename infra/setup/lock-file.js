/**
 * @typedef {{ version?: string, resolved?: string, integrity?: string, link?: boolean, optional?: boolean, devOptional?: boolean,
 *   peer?: boolean, os?: readonly string[], cpu?: readonly string[], libc?: readonly string[],
 *   optionalDependencies?: Record<string, string> }} LockedPackage
 * @typedef {{ packages?: Record<string, LockedPackage> }} LockFile
 */

/**
 * Returns the packages that are locked but not installed, by npm's own list in node_modules (`.package-lock.json`).
 * Packages that are optional or for another system may be missing.
 * @param {LockFile} locked package-lock.json
 * @param {LockFile} installed node_modules/.package-lock.json
 * @returns {string[]} paths
 */
export function differences(locked, installed) {
  const there = installed.packages ?? {};
  return Object.entries(locked.packages ?? {})
    .filter(([path, wanted]) => {
      if (!path.includes("node_modules/")) return false;
      const found = there[path];
      if (found === undefined) return wanted.optional !== true;
      return found.version !== wanted.version || found.link !== wanted.link;
    })
    .map(([path]) => path);
}
