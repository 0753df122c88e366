import { ProblemError } from "@konverge/client";
import { ensureError, ERRORS, isKonvergeError } from "@konverge/core";
import type { Command } from "commander";
import { exitCodeOf } from "../process/exit-codes.ts";
import { oneLine } from "../process/explain-failure.ts";
import { print, printNote, type Shown } from "../text/output.ts";
import { runWithClient, type Asking, type ClientFlags } from "./run-with-client.ts";

export interface WatchFlags extends ClientFlags {
  readonly watch?: boolean;
}

/** The output of a command, repeated with `--watch`. */
export interface Watched extends Shown {
  /** Changes when the view does. Default: the whole document. */
  readonly key?: string;
  /** A message below the view, on stderr. */
  readonly note?: string | undefined;
}

const EVERY_MS = 2_000;
const UNAVAILABLE = 6;

export function withWatch(command: Command): Command {
  return command.option("-w, --watch", "Show changes until interrupted");
}

/** Runs `read` with a client, and shows its answer. */
export async function runWatched(
  flags: WatchFlags,
  read: (asking: Asking) => Promise<Watched>,
  context?: Parameters<typeof runWithClient>[2],
): Promise<void> {
  await runWithClient(flags, (asking) => showWatched(flags, () => read(asking)), context);
}

/**
 * Prints the answer of `read`. With `--watch`, a table on a terminal is redrawn; elsewhere it is printed again when it changes.
 * A watch continues while the server or Redis is unavailable.
 */
export async function showWatched(
  flags: WatchFlags,
  read: () => Promise<Watched>,
  everyMs: number = EVERY_MS,
): Promise<void> {
  const isLive = flags.watch === true && flags.output === "table" && process.stdout.isTTY;
  let shownKey: string | undefined;
  let failure: string | undefined;
  for (;;) {
    try {
      const shown = await read();
      const { key = JSON.stringify(shown.document) } = shown;
      if (isLive) redraw(shown);
      else if (key !== shownKey) {
        if (shownKey !== undefined && flags.output === "table") printNote(new Date().toISOString());
        showOnce(flags, shown);
      }
      shownKey = key;
      failure = undefined;
    } catch (error) {
      // The first failure ends the command as it does without --watch.
      if (shownKey === undefined || !isUnavailable(error)) throw error;
      const message = oneLine(ensureError(error).message);
      if (message !== failure) printNote(`konverge: ${message}; trying again`);
      failure = message;
    }
    if (flags.watch !== true) return;
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}

function showOnce({ output }: ClientFlags, shown: Watched): void {
  print(output, shown);
  if (shown.note !== undefined) printNote(shown.note);
}

/** Clears the terminal and prints as many lines as it has. */
function redraw({ document, items = [document], empty, table }: Watched): void {
  const text = empty !== undefined && items.length === 0 ? empty : table();
  const lines = text.split("\n");
  const most = Math.max(1, (process.stdout.rows ?? Infinity) - 2);
  const more = lines.length > most ? [`and ${lines.length - most + 1} more lines`] : [];
  const kept = more.length === 0 ? lines : lines.slice(0, most - 1);
  process.stdout.write(`\u001b[H\u001b[2J${[...kept, ...more].join("\n")}\n`);
}

function isUnavailable(error: unknown): boolean {
  if (error instanceof ProblemError) return exitCodeOf(error) === UNAVAILABLE;
  return isKonvergeError(error) && ERRORS[error.code].exitCode === UNAVAILABLE;
}
