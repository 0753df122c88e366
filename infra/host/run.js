import { spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

/**
 * Runs a program to its end. Its output goes to our stderr, because stdout belongs to the command after the set-up.
 * @param {string} program @param {readonly string[]} args
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv }} [options]
 * @returns {boolean} true if it succeeded
 */
export function succeeds(program, args, options = {}) {
  return spawnSync(program, args, { ...options, stdio: ["ignore", 2, 2] }).status === 0;
}

/**
 * Runs a program and returns its output.
 * @param {string} program @param {readonly string[]} args @returns {string} its stdout, empty if it failed
 */
export function outputOf(program, args) {
  const { status, stdout } = spawnSync(program, args, {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
    maxBuffer: 64 * 1024 * 1024,
  });
  return status === 0 ? stdout : "";
}

/** @param {string} program @param {NodeJS.ProcessEnv} [env] @returns {boolean} true if PATH has it */
export function isOnPath(program, env = process.env) {
  return (env.PATH ?? "").split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return folder !== "";
    } catch {
      return false;
    }
  });
}
