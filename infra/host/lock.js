import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** Interval between checks of a waiter, in ms. */
const POLL_MS = 250;
/** A lock without an owner's note of this age, in ms, belongs to a process that died while taking it. */
const UNSIGNED_MS = 5_000;

/**
 * Runs `work` while no other process on this machine runs under the same lock. The lock is a folder, because creating
 * one is atomic on every file system. It holds its owner's process id, so that the lock of a killed process is taken
 * over.
 * @template T
 * @param {string} path of the lock folder
 * @param {{ onWait?: (owner: string) => void }} options `onWait` is called once, before a wait
 * @param {() => Promise<T> | T} work
 * @returns {Promise<T>}
 */
export async function withLock(path, { onWait }, work) {
  mkdirSync(dirname(path), { recursive: true });
  const note = join(path, "owner.json");
  let reported = false;
  while (!take(path)) {
    const owner = ownerOf(path, note);
    if (owner === "dead") {
      rmSync(path, { recursive: true, force: true });
      continue;
    }
    if (!reported) onWait?.(owner);
    reported = true;
    await sleep(POLL_MS);
  }
  writeFileSync(note, JSON.stringify({ pid: process.pid, host: hostname() }));
  try {
    return await work();
  } finally {
    rmSync(path, { recursive: true, force: true });
  }
}

/** @param {string} path @returns {boolean} true if this process took the lock */
function take(path) {
  try {
    mkdirSync(path);
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

/** @param {string} path @param {string} note @returns {string} `dead`, or a description of the owner */
function ownerOf(path, note) {
  try {
    const { pid, host } = JSON.parse(readFileSync(note, "utf8"));
    if (host !== hostname()) return `process ${pid} on ${host}`;
    return isAlive(pid) ? `process ${pid}` : "dead";
  } catch {
    // Not signed yet, half written, or just released: only its age can decide.
    const age = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
    return age > UNSIGNED_MS ? "dead" : "a starting process";
  }
}

/** @param {number} pid @returns {boolean} */
export function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === "EPERM";
  }
}

/** @param {unknown} error @returns {string | undefined} */
function codeOf(error) {
  return /** @type {NodeJS.ErrnoException} */ (error).code;
}
