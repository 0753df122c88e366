import type { StepMark } from "../store/run-journal-store.ts";
import type { VerbScope } from "./verb-scope.ts";

/** Annotations by which a later try of a step sees that it has changed the object. */
const PREFIX = "konverge.dev/step-";
const HASH_CHARS = 32;

export function markerName(hash: string): string {
  return PREFIX + hash.slice(0, HASH_CHARS);
}

/** Text of the annotation: whose mark it is. */
export async function markOf({ journal, step }: VerbScope): Promise<string> {
  const { workflow, id, run } = journal.held;
  const installation = await journal.installation();
  return JSON.stringify({ installation, workflow, run: id, createdAtMs: run.createdAtMs, step });
}

/** The marks in an object's annotations; those that cannot be read are nobody's. */
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
    // Somebody else's annotation under our prefix; it stays.
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
