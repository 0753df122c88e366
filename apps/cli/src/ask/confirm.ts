import { createInterface } from "node:readline/promises";
import { KonvergeError } from "@konverge/core";

export interface Question {
  /** Continues "This will". */
  readonly what: string;
  /** The command that would do so without confirmation; the reason if there is no terminal. */
  readonly by: string;
  /** Ends the question. Default: never. */
  readonly signal?: AbortSignal;
}

/** Asks the user in the terminal. @throws KonvergeError `invalid_request` if the user declines, or without a terminal */
export async function confirm({ what, by, signal }: Question): Promise<void> {
  if (!process.stdin.isTTY) {
    throw new KonvergeError("invalid_request", `${by} would ${what}; add --yes to confirm`);
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const options = signal === undefined ? {} : { signal };
    const answer = await terminal.question(`This will ${what}. Continue? [y/N] `, options);
    if (/^y(es)?$/i.test(answer.trim())) return;
  } finally {
    terminal.close();
  }
  throw new KonvergeError("invalid_request", `${by} was not confirmed; nothing was changed`);
}
