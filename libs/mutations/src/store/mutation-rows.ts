import { defined, MUTATION_STATES, parseJson, type MutationState } from "@konverge/core";
import type { MutationView, NewMutation, Verdict } from "./mutation-store.ts";

/** The fields of a stored mutation; empty if missing. */
export interface MutationRow {
  readonly text: string;
  readonly state: string;
  readonly createdAt: string;
  readonly endedAt: string;
  readonly result: string;
}

/** Returns the text of a mutation in Redis. Integers beyond 2^53 stay as they are. */
export function textOf(mutation: NewMutation): string {
  return JSON.stringify(mutation);
}

export function parseMutation(text: string): NewMutation {
  return parseJson(text) as unknown as NewMutation;
}

export function viewOf({ text, state, createdAt, endedAt, result }: MutationRow): MutationView {
  const ended = result === "" ? {} : (JSON.parse(result) as Omit<Verdict, "outcome">);
  return {
    ...parseMutation(text),
    state: stateOf(state),
    createdAtMs: Number(createdAt),
    ...defined({ endedAtMs: endedAt === "" ? undefined : Number(endedAt) }),
    ...ended,
  };
}

function stateOf(text: string): MutationState {
  const known = MUTATION_STATES.find((state) => state === text);
  if (known === undefined) throw new RangeError(`unknown state of a mutation: ${text}`);
  return known;
}
