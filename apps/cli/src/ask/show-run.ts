import { ProblemError, type Client } from "@konverge/client";
import type { RunDetail } from "@konverge/contracts";
import type { Command } from "commander";
import { exitCodeOf } from "../process/exit-codes.ts";
import { oneLine } from "../process/explain-failure.ts";
import { print, printNote } from "../text/output.ts";
import { runDetails } from "../text/run-text.ts";
import type { ClientFlags } from "./run-with-client.ts";
import { timeoutOption } from "./timeout-option.ts";

export interface WaitFlags extends ClientFlags {
  readonly wait?: boolean;
  readonly timeout: number;
}

export const RUN_ID = "Run ID, as printed by run start";

/** The options behind the fields of queries and bodies. */
export const RUN_OPTIONS = {
  options: {
    "/workflow": "<workflow>",
    "/input": "--input",
    "/payload": "--payload",
    "/id": "--id",
    "/key": "--key",
    "/status": "--status",
    "/search": "--search",
    "/parent": "--parent",
    "/label": "--label",
    "/labels": "--label",
    "/since": "--since",
    "/until": "--until",
    "/version": "--code-version",
    "/error": "--error",
    "/name": "<signal> or <update>",
    "/skipUndo": "--skip-undo",
  },
} as const;

export function withWait(command: Command): Command {
  return command
    .option("--wait", "Wait until the run ends; exit with 1 if it did not succeed")
    .addOption(timeoutOption());
}

export function showRun({ output }: ClientFlags, run: RunDetail): void {
  print(output, { document: run, names: [run.id], table: () => runDetails(run) });
}

/** Prints the run when it ends or the wait times out, and sets the exit code. */
export async function showWhenEnded(client: Client, id: string, flags: WaitFlags): Promise<void> {
  if (process.stderr.isTTY) printNote(`waiting for ${id}`);
  try {
    const run = await client.runs.wait(id, { timeoutMs: flags.timeout });
    showRun(flags, run);
    endAs(run);
  } catch (error) {
    const timeout = timeoutOf(error);
    showRun(flags, await client.runs.get(id));
    endLate(timeout);
  }
}

/** Sets the exit code: every status but `done` is a failure. */
export function endAs({ status }: RunDetail): void {
  if (status !== "done") process.exitCode = 1;
}

/** Returns a timeout of the wait and throws any other error. */
export function timeoutOf(error: unknown): ProblemError {
  if (error instanceof ProblemError && error.code === "wait_timeout") return error;
  throw error;
}

export function endLate(timeout: ProblemError): void {
  printNote(`konverge: ${oneLine(timeout.message)}`);
  process.exitCode = exitCodeOf(timeout);
}
