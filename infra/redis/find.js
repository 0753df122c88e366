import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { cacheDirectory } from "../host/cache-directory.js";
import { isNewEnough, parseServerVersion } from "./version.js";

const NAMES = ["redis-server", "valkey-server"];
/** Homebrew's folders, which are missing from the PATH of a shell started before Homebrew was installed. */
const BREW_FOLDERS = ["/opt/homebrew/bin", "/usr/local/bin", "/home/linuxbrew/.linuxbrew/bin"];

/** The folder of an unpacked Redis, for machines without permission to install one. */
export function unpackedFolder(/** @type {NodeJS.ProcessEnv} */ env = process.env) {
  return join(cacheDirectory({ env }), "redis", `${process.platform}-${process.arch}`);
}

/**
 * Returns all server programs on this machine, including outdated ones.
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {import("./index.d.ts").RedisServer[]}
 */
export function listRedisServers(env = process.env) {
  const folders = [...(env.PATH ?? "").split(delimiter).filter(Boolean), ...BREW_FOLDERS];
  /** @type {{ path: string, libraryPath?: string }[]} */
  const onPath = NAMES.flatMap((name) => folders.map((folder) => ({ path: join(folder, name) })));
  const root = unpackedFolder(env);
  const unpacked = NAMES.map((name) => ({
    path: join(root, "usr", "bin", name),
    libraryPath: libraryFolders(root).join(":"),
  }));
  return onPath.concat(unpacked).flatMap((candidate) => {
    if (!existsSync(candidate.path)) return [];
    const { stdout } = spawnSync(candidate.path, ["--version"], {
      encoding: "utf8",
      timeout: 5_000,
      env: serverEnvironment(candidate, env),
    });
    const parsed = parseServerVersion(stdout ?? "");
    return parsed === undefined ? [] : [{ ...candidate, ...parsed }];
  });
}

/** @type {typeof import("./index.d.ts").findRedisServer} */
export function findRedisServer(env = process.env) {
  return listRedisServers(env).find(({ version }) => isNewEnough(version));
}

/**
 * Adds the libraries of an unpacked server, which the system's loader does not find.
 * @param {{ libraryPath?: string | undefined }} server @param {NodeJS.ProcessEnv} [env]
 * @returns {NodeJS.ProcessEnv}
 */
export function serverEnvironment({ libraryPath }, env = process.env) {
  if (libraryPath === undefined) return env;
  const paths = [libraryPath, env.LD_LIBRARY_PATH].filter(Boolean);
  return { ...env, LD_LIBRARY_PATH: paths.join(":") };
}

/** @param {string} root @returns {string[]} lib folders and their one level of system-named folders */
function libraryFolders(root) {
  return ["usr/lib", "lib"].flatMap((name) => {
    const folder = join(root, name);
    if (!existsSync(folder)) return [];
    const inside = readdirSync(folder, { withFileTypes: true }).filter((entry) =>
      entry.isDirectory(),
    );
    return [folder, ...inside.map((entry) => join(folder, entry.name))];
  });
}
