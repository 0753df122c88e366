import {
  closeSync,
  existsSync,
  ftruncateSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { isJsonObject, KonvergeError, parseJson, type JsonObject } from "@konverge/core";
import { lockFolder } from "./folder-lock.ts";
import type { Change, StoredObject } from "./stored-object.ts";

/** A snapshot is written when the log has this many bytes and is twice as long as the last snapshot. */
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
 * Keeps a store's objects in a directory: a snapshot and a log of the changes since, one JSON line each. A line reaches
 * the operating system before its request is answered, so `kill -9` loses nothing; a truncated last line is dropped.
 * There is no fsync: a crash of the machine may lose the last seconds.
 */
export class ChangeLog {
  readonly #folder: string;
  readonly #unlock: () => void;
  readonly #log: number;
  #logBytes = 0;
  #snapshotBytes = 0;

  /** @throws KonvergeError `invalid_config` if another server uses the directory */
  constructor(folder: string) {
    mkdirSync(folder, { recursive: true });
    this.#folder = folder;
    this.#unlock = lockFolder(folder);
    this.#log = openSync(join(folder, "log.jsonl"), "a+");
  }

  /** @throws KonvergeError `invalid_config` if a complete line is invalid */
  load(): LoadedState {
    const objects = new Map<string, LoadedObject>();
    const snapshotPath = join(this.#folder, "snapshot.jsonl");
    const snapshot = readIfThere(snapshotPath);
    this.#snapshotBytes = Buffer.byteLength(snapshot);
    const base = Math.max(1, replayAll({ path: snapshotPath, text: snapshot, base: 0 }, objects));
    const logPath = join(this.#folder, "log.jsonl");
    const log = readIfThere(logPath);
    // Text after the last line break was being written when the process died.
    const whole = log.slice(0, log.lastIndexOf("\n") + 1);
    this.#logBytes = Buffer.byteLength(whole);
    if (whole.length < log.length) ftruncateSync(this.#log, this.#logBytes);
    const newest = replayAll({ path: logPath, text: whole, base }, objects);
    return { version: Math.max(base, newest), objects: objects.values() };
  }

  /** Appends one change; writes a snapshot first if the log has grown long. */
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
    this.#unlock();
  }

  /** A rename puts the snapshot in place. A log that was not emptied in time has versions that loading skips. */
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

/** Returns the highest version in a file, 0 for an empty one. */
function replayAll(
  { path, text, base }: { readonly path: string; readonly text: string; readonly base: number },
  objects: Map<string, LoadedObject>,
): number {
  let version = 0;
  for (const [index, line] of text.split("\n").entries()) {
    if (line === "") continue;
    try {
      version = Math.max(version, replay(line, base, objects));
    } catch (cause) {
      throw new KonvergeError(
        "invalid_config",
        `${path}:${index + 1} is damaged: restore the data folder from a copy, or start with an empty one`,
        { cause },
      );
    }
  }
  return version;
}

/** Returns the line's version. A line at or below `base` is older than the snapshot. */
function replay(line: string, base: number, objects: Map<string, LoadedObject>): number {
  const { v, t, k, o } = parseJson(line) as JsonObject;
  const version = Number(v);
  if (!Number.isSafeInteger(version)) throw new TypeError("a line has no version");
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
