import type { StepMark } from "../store/run-journal-store.ts";
import type { VerbScope } from "./verb-scope.ts";

/** Annotations by which a later attempt of a step detects that it has changed the object. */
const PREFIX = "konverge.dev/step-";
const HASH_CHARS = 32;

export function markerName(hash: string): string {
  return PREFIX + hash.slice(0, HASH_CHARS);
}

/** Returns the text of the annotation, which identifies the step. */
export async function markOf({ journal, step }: VerbScope): Promise<string> {
  const { workflow, id, run } = journal.held;
  const installation = await journal.installation();
  return JSON.stringify({ installation, workflow, run: id, createdAtMs: run.createdAtMs, step });
}

/** Returns the marks in an object's annotations; unreadable ones have no `mark`. */
export function marksIn(
  annotations: Readonly<Record<string, string>> | undefined,
): { readonly name: string; readonly text: string; readonly mark: StepMark | undefined }[] {
  return Object.entries(annotations ?? {})
    .filter(([name]) => name.startsWith(PREFIX))
    .map(([name, text]) => ({ name, text, mark: parseMark(text) }));
}

function parseMark(text: string): StepMark | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // An annotation of another program with our prefix; it stays.
    return undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  const { installation, workflow, run, createdAtMs, step } = value as Record<string, unknown>;
  if (typeof installation !== "string" || typeof workflow !== "string") return undefined;
  if (typeof run !== "string" || typeof step !== "string") return undefined;
  return typeof createdAtMs === "number"
    ? { installation, workflow, id: run, createdAtMs, step }
    : undefined;
}
