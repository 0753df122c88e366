import { isOfRound } from "../store/mark-state.ts";
import type { StepMark } from "../store/run-journal-store.ts";
import type { VerbScope } from "./verb-scope.ts";

/** Annotations by which a later attempt of a step detects that it has changed the object. */
const PREFIX = "konverge.dev/step-";
const HASH_CHARS = 32;

export function markerName(hash: string): string {
  return PREFIX + hash.slice(0, HASH_CHARS);
}

/** Returns the text of the annotation, which identifies the step. `created`: the step has created the object. */
export async function markOf(
  { journal, step }: VerbScope,
  { created }: { readonly created?: true } = {},
): Promise<string> {
  const { workflow, id, run } = journal.held;
  const installation = await journal.installation();
  const { createdAtMs, round } = run;
  return JSON.stringify({ installation, workflow, run: id, createdAtMs, round, step, created });
}

export interface CreationMark {
  /** Of the annotation. */
  readonly name: string;
  /** Of the annotation. */
  readonly text: string;
  readonly step: string;
}

/** Returns the annotations by which steps of this run have marked an object that they created. */
export async function creationMarksIn(
  { journal }: VerbScope,
  annotations: Annotations | undefined,
): Promise<readonly CreationMark[]> {
  const { workflow, id, run } = journal.held;
  const created = marksIn(annotations).filter(({ mark }) => mark?.created === true);
  if (created.length === 0) return [];
  const installation = await journal.installation();
  return created.flatMap(({ name, text, mark }) => {
    const isOwn =
      mark?.installation === installation &&
      mark.workflow === workflow &&
      mark.id === id &&
      isOfRound(mark, run);
    return isOwn ? [{ name, text, step: mark.step }] : [];
  });
}

type Annotations = Readonly<Record<string, string>>;

/** Returns the marks in an object's annotations; unreadable ones have no `mark`. */
export function marksIn(
  annotations: Annotations | undefined,
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
  const fields = value as Record<string, unknown>;
  const { installation, workflow, run, createdAtMs, round, step, created } = fields;
  if (typeof installation !== "string" || typeof workflow !== "string") return undefined;
  if (typeof run !== "string" || typeof step !== "string") return undefined;
  if (typeof createdAtMs !== "number") return undefined;
  return {
    installation,
    workflow,
    id: run,
    createdAtMs,
    ...(typeof round === "number" ? { round } : {}),
    step,
    created: created === true,
  };
}
