import {
  closeSync,
  existsSync,
  ftruncateSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { isJsonObject, KonvergeError, parseJson, type JsonObject } from "@konverge/core";
import type { Change, StoredObject } from "./object-table.ts";

/** A snapshot is due when the log has this many bytes and is twice as long as the last snapshot. */
const SNAPSHOT_AFTER_BYTES = 16 * 1024 * 1024;

interface LoadedObject {
  readonly table: string;
  readonly key: string;
  readonly version: number;
  readonly object: JsonObject;
}
export interface LoadedState {
  readonly version: number;
  readonly objects: Iterable<LoadedObject>;
}
type Everything = () => Iterable<{ readonly table: string; readonly stored: StoredObject }>;

/**
 * Keeps a store's objects in a folder: a snapshot and a log of the changes since, one JSON line each. A line reaches the
 * operating system before its request is answered, so `kill -9` loses nothing; a line that was cut in two is dropped.
 * Not fsynced: a crash of the machine may lose the last seconds.
 */
export class ChangeLog {
  readonly #folder: string;
  readonly #lock: string;
  readonly #log: number;
  #logBytes = 0;
  #snapshotBytes = 0;

  /** @throws KonvergeError `invalid_config` when another server uses the folder */
  constructor(folder: string) {
    mkdirSync(folder, { recursive: true });
    this.#folder = folder;
    this.#lock = join(folder, "lock");
    takeLock(this.#lock, folder);
    this.#log = openSync(join(folder, "log.jsonl"), "a+");
  }

  load(): LoadedState {
    const objects = new Map<string, LoadedObject>();
    let version = 1;
    const snapshot = readIfThere(join(this.#folder, "snapshot.jsonl"));
    this.#snapshotBytes = snapshot.length;
    for (const line of snapshot.split("\n")) {
      if (line !== "") version = Math.max(version, replay(line, 0, objects));
    }
    const base = version;
    const log = readIfThere(join(this.#folder, "log.jsonl"));
    // Whatever stands after the last line break was being written when the process died.
    const whole = log.slice(0, log.lastIndexOf("\n") + 1);
    this.#logBytes = Buffer.byteLength(whole);
    if (whole.length < log.length) ftruncateSync(this.#log, this.#logBytes);
    for (const line of whole.split("\n")) {
      if (line !== "") version = Math.max(version, replay(line, base, objects));
    }
    return { version, objects: objects.values() };
  }

  /** Appends one change; writes a snapshot first when the log has grown long. */
  append(table: string, change: Change, everything: Everything): void {
    if (this.#logBytes > Math.max(SNAPSHOT_AFTER_BYTES, 2 * this.#snapshotBytes)) {
      this.#writeSnapshot(change.version - 1, everything);
    }
    const line = Buffer.from(`${formatLine(table, change.current, change.type === "DELETED")}\n`);
    writeFully(this.#log, line);
    this.#logBytes += line.length;
  }

  close(): void {
    fsyncSync(this.#log);
    closeSync(this.#log);
    unlinkSync(this.#lock);
  }

  /** The snapshot takes its place by a rename; a log that was not emptied in time holds versions that loading skips. */
  #writeSnapshot(version: number, everything: Everything): void {
    const path = join(this.#folder, "snapshot.jsonl");
    const file = openSync(`${path}.new`, "w");
    const lines = [JSON.stringify({ v: version })];
    for (const { table, stored } of everything()) lines.push(formatLine(table, stored, false));
    const bytes = Buffer.from(`${lines.join("\n")}\n`);
    writeFully(file, bytes);
    fsyncSync(file);
    closeSync(file);
    renameSync(`${path}.new`, path);
    ftruncateSync(this.#log, 0);
    this.#snapshotBytes = bytes.length;
    this.#logBytes = 0;
  }
}

function formatLine(table: string, stored: StoredObject, isDeletion: boolean): string {
  const head = `{"v":${stored.version},"t":${JSON.stringify(table)},"k":${JSON.stringify(stored.key)}`;
  return isDeletion ? `${head}}` : `${head},"o":${stored.text}}`;
}

/** Returns the line's version. A line at or below `base` is older than the snapshot that was read before it. */
function replay(line: string, base: number, objects: Map<string, LoadedObject>): number {
  const { v, t, k, o } = parseJson(line) as JsonObject;
  const version = Number(v);
  if (typeof t !== "string" || typeof k !== "string" || (base > 0 && version <= base))
    return version;
  if (isJsonObject(o)) objects.set(`${t}/${k}`, { table: t, key: k, version, object: o });
  else objects.delete(`${t}/${k}`);
  return version;
}

function writeFully(file: number, bytes: Buffer): void {
  for (let written = 0; written < bytes.length;) written += writeSync(file, bytes, written);
}

function readIfThere(path: string): string {
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

/** The lock names its owner's process; that of a dead one is taken over. */
function takeLock(path: string, folder: string): void {
  if (tryLock(path)) return;
  const owner = Number(readFileSync(path, "utf8"));
  if (owner > 0 && isAlive(owner)) {
    throw new KonvergeError(
      "invalid_config",
      `data folder ${folder} is in use by process ${owner}: stop it or give another folder; if that process is something else, remove ${path}`,
    );
  }
  unlinkSync(path);
  takeLock(path, folder);
}

function tryLock(path: string): boolean {
  try {
    writeFileSync(path, String(process.pid), { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
