import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { chooseNode, OLDEST_NODE } from "./node-version.js";
import { SetupError } from "./setup-error.js";

/**
 * Finds a Node that runs TypeScript: the current one, else that of the npm package `node`.
 * @param {string} root of the repository, packages installed
 * @returns {string} its path
 * @throws {SetupError}
 */
export function findNode(root) {
  const ours = { path: process.execPath, version: process.version };
  const packaged = join(root, "node_modules", ".bin", "node");
  // The check starts a process, so it runs only if its result matters.
  const chosen =
    chooseNode([ours]) ?? chooseNode([{ path: packaged, version: versionOf(packaged) }]);
  if (chosen !== undefined) return chosen.path;
  throw new SetupError(
    `Node ${process.version} is older than ${OLDEST_NODE}, and the npm package \`node\`, which contains a newer one, is not in node_modules`,
    `install Node ${OLDEST_NODE} or newer or, if npm is configured to run no install scripts, run \`npm ci --ignore-scripts=false --loglevel=notice\``,
  );
}

/** @param {string} path @returns {string} empty if it does not run */
function versionOf(path) {
  if (!existsSync(path)) return "";
  return spawnSync(path, ["--version"], { encoding: "utf8", timeout: 10_000 }).stdout ?? "";
}
