/** How an update was answered. */
export type UpdateAnswer =
  | { readonly kind: "accepted"; readonly step: string; readonly value?: unknown }
  | { readonly kind: "refused"; readonly refusal: UpdateRefusal };

/** Why an update was refused. Nothing of it is recorded. */
export interface UpdateRefusal {
  readonly message: string;
  /** The invalid parts of the payload. */
  readonly issues: readonly { readonly pointer: string; readonly detail: string }[];
}

/** How long the answers of a run are kept after the last one, in ms. */
export const ANSWERS_KEPT_MS = 604_800_000;

/** How many answers of a run are kept that are refusals or of an earlier round. */
export const MOST_ANSWERED = 1_000;

/** Longest record of an answer that is kept after its round, in bytes. */
export const MAX_KEPT_ANSWER = 65_536;

/** Updates wait among the signals of a run, under a name that no signal has. */
const PREFIX = "update:";

export function updateSignal(name: string): string {
  return PREFIX + name;
}

/** The id of an update among those of signals, which may be the same. */
export function updateSignalId(id: string): string {
  return PREFIX + id;
}

export function updateIdOf(signalId: string): string {
  return signalId.slice(PREFIX.length);
}
