import { accessSync, constants, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/**
 * Returns the user's cache folder for downloads and builds: outside the repository, so that all clones share it. Pure,
 * so that every system can be tested on any other.
 * @param {{ env?: NodeJS.ProcessEnv, platform?: string, home?: string }} [options]
 * @returns {string}
 */
export function cacheDirectory({
  env = process.env,
  platform = process.platform,
  home = homedir(),
} = {}) {
  if (env.XDG_CACHE_HOME?.startsWith("/")) return join(env.XDG_CACHE_HOME, "konverge");
  if (platform === "darwin") return join(home, "Library", "Caches", "konverge");
  return join(home, ".cache", "konverge");
}

/**
 * Creates a folder inside the cache, with its parents.
 * @param {...string} parts below the cache directory
 * @returns {string} its path
 * @throws {Error} `cache_not_writable` with the folder and the fix
 */
export function makeCacheFolder(...parts) {
  const folder = join(cacheDirectory(), ...parts);
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
  } catch (cause) {
    throw Object.assign(
      new Error(
        `cannot write to the cache folder ${folder} (${/** @type {Error} */ (cause).message}): ` +
          "make it writable, or set XDG_CACHE_HOME to a writable folder",
        { cause },
      ),
      { code: "cache_not_writable" },
    );
  }
  return folder;
}
