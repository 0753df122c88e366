import { readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { KonvergeError } from "@konverge/core";

/**
 * Locks of this process. A lock with our process ID that is missing here belongs to an earlier process with the same
 * ID.
 */
const held: Set<string> = new Set();

/**
 * Locks a data directory until the returned function is called. The lock is a file with the owner's process ID; that of
 * a dead process is taken over. In a container every start has the same ID, so an equal ID alone proves nothing.
 * @throws KonvergeError `invalid_config` if another server uses the directory
 */
export function lockFolder(folder: string): () => void {
  const path = resolve(join(folder, "lock"));
  if (held.has(path)) throw inUse(folder, path, process.pid);
  while (!tryLock(path)) {
    const owner = readOwner(path);
    if (owner > 0 && owner !== process.pid && isAlive(owner)) throw inUse(folder, path, owner);
    removeLock(path);
  }
  held.add(path);
  return () => {
    held.delete(path);
    removeLock(path);
  };
}

const inUse = (folder: string, path: string, owner: number): KonvergeError =>
  new KonvergeError(
    "invalid_config",
    `data folder ${folder} is in use by process ${owner}: stop it or give another folder; if that process is something else, remove ${path}`,
  );

function tryLock(path: string): boolean {
  try {
    writeFileSync(path, String(process.pid), { flag: "wx" });
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

/** Returns 0 if the lock has disappeared, or if its writer died before writing it. */
function readOwner(path: string): number {
  try {
    return Number(readFileSync(path, "utf8"));
  } catch (error) {
    if (codeOf(error) === "ENOENT") return 0;
    throw error;
  }
}

function removeLock(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === "EPERM";
  }
}

const codeOf = (error: unknown): unknown =>
  error instanceof Error && "code" in error ? error.code : undefined;
