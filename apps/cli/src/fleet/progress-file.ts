import { appendFileSync, existsSync, readFileSync, truncateSync } from "node:fs";
import { defined, KonvergeError } from "@konverge/core";
import type { FleetEntry, FleetQuery } from "./fleet-plan.ts";

/** The plans of an interrupted command, one JSON document per line. The first line has the selection. */
export interface ProgressFile {
  /** When the first call began (ISO 8601); undefined for a new file. */
  readonly since: string | undefined;
  find(key: string): FleetEntry | undefined;
  append(entry: FleetEntry): void;
}

/** @throws KonvergeError `invalid_request` for a file with other contents or of another selection */
export function openProgressFile(path: string, query: FleetQuery): ProgressFile {
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  const end = text.lastIndexOf("\n") + 1;
  // A killed process may have written a part of its last line.
  if (end < text.length) truncateSync(path, Buffer.byteLength(text.slice(0, end)));
  const [head, ...lines] = text.slice(0, end).split("\n").slice(0, -1);
  const since = head === undefined ? undefined : checkHead(head, { path, query });
  const known = new Map(lines.map((line) => entryOf(line, path)).map((each) => [each.key, each]));
  const append = (line: object) => appendFileSync(path, `${JSON.stringify(line)}\n`);
  if (since === undefined) append({ selection: selectionOf(query), since: new Date() });
  return { since, find: (key) => known.get(key), append };
}

function selectionOf({ cluster, controller = "*", namespace = "*", config }: FleetQuery): string {
  const parts = { cluster, controller, namespace, ...defined({ config }) };
  return Object.entries(parts)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");
}

/** Returns the time of the first call. */
function checkHead(
  line: string,
  { path, query }: { readonly path: string; readonly query: FleetQuery },
): string {
  const { selection, since } = parse(line) as { selection?: unknown; since?: unknown };
  if (typeof selection !== "string" || typeof since !== "string") throw notPlans(path);
  if (selection === selectionOf(query)) return since;
  throw new KonvergeError(
    "invalid_request",
    `--resume: ${path} has plans of ${selection}, not of ${selectionOf(query)}; use a new file`,
  );
}

function entryOf(line: string, path: string): FleetEntry {
  const entry = parse(line) as Partial<FleetEntry>;
  if (typeof entry.key === "string" && Array.isArray(entry.changes)) return entry as FleetEntry;
  throw notPlans(path);
}

/** Returns an empty object for a text that is not a JSON object. */
function parse(line: string): object {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}

function notPlans(path: string): KonvergeError {
  return new KonvergeError(
    "invalid_request",
    `--resume: ${path} has a line that is not a plan; use a new file, or one of an earlier call`,
  );
}
