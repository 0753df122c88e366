import { appendFileSync, existsSync, readFileSync, truncateSync } from "node:fs";
import { KonvergeError } from "@konverge/core";
import type { FleetEntry } from "./fleet-plan.ts";

/** The plans of an interrupted command, one JSON document per line. */
export interface ProgressFile {
  find(key: string): FleetEntry | undefined;
  append(entry: FleetEntry): void;
}

/** @throws KonvergeError `invalid_request` for another file */
export function openProgressFile(path: string): ProgressFile {
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  const end = text.lastIndexOf("\n") + 1;
  // A killed process may have written a part of its last line.
  if (end < text.length) truncateSync(path, Buffer.byteLength(text.slice(0, end)));
  const lines = text.slice(0, end).split("\n").slice(0, -1);
  const known = new Map(lines.map((line) => entryOf(line, path)).map((each) => [each.key, each]));
  return {
    find: (key) => known.get(key),
    append: (entry) => appendFileSync(path, `${JSON.stringify(entry)}\n`),
  };
}

function entryOf(line: string, path: string): FleetEntry {
  try {
    const entry = JSON.parse(line) as Partial<FleetEntry>;
    if (typeof entry.key === "string" && Array.isArray(entry.changes)) return entry as FleetEntry;
  } catch {
    // Reported below.
  }
  throw new KonvergeError(
    "invalid_request",
    `--resume: ${path} has a line that is not a plan; use a new file, or one of an earlier call`,
  );
}
