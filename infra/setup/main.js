// Runs before anything is installed, on the machine's own Node (20 or newer): no dependency, no TypeScript.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findRedisServer, installRedis } from "../redis/index.js";
import { COMMANDS } from "./commands.js";
import { ensureDashboard } from "./dashboard.js";
import { findNode } from "./node.js";
import { isAtLeast } from "./node-version.js";
import { ensurePackages } from "./packages.js";
import { runCommand } from "./run-command.js";
import { SetupError } from "./setup-error.js";

const OLDEST_FOR_SETUP = "20.0.0";
const root = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
const log = (/** @type {string} */ line) => console.error(`set-up: ${line}`);

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const { code, message } = /** @type {NodeJS.ErrnoException} */ (error);
  const isExpected =
    error instanceof SetupError || ["redis_unavailable", "cache_not_writable"].includes(code ?? "");
  if (!isExpected) throw error;
  log(message);
  process.exitCode = 1;
}

/** @param {string[]} argv @returns {Promise<number>} the exit code */
async function main([name = "", ...args]) {
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined) {
    log(`usage: node infra/setup/main.js <${Object.keys(COMMANDS).join("|")}> [arguments]`);
    return 2;
  }
  const { run, redis, pages } = command;
  if (!isAtLeast(process.version, OLDEST_FOR_SETUP)) {
    throw new SetupError(
      `Node ${process.version} is too old`,
      `install Node ${OLDEST_FOR_SETUP} or newer (https://nodejs.org)`,
    );
  }
  await ensurePackages(root, log);
  if (redis && !process.env.REDIS_URL && findRedisServer() === undefined) {
    const { kind, version, path } = await installRedis({ log });
    log(`${kind} ${version}: ${path}`);
  }
  const node = findNode(root);
  if (pages) await ensureDashboard(root, node, log);
  const [file] = run;
  if (file === undefined) return 0;
  if (!existsSync(join(root, file))) {
    throw new SetupError(
      `${file} is missing from this checkout`,
      "check the clone with `git status`",
    );
  }
  return await runCommand({ root, node, args: [...run, ...args] });
}
