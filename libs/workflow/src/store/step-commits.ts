import { atEndOfTurn, createTickBatch } from "@konverge/redis";
import type { RedisRuns } from "./redis-runs.ts";
import { commitStepsScript, type StepCommitAnswer } from "./scripts/commit-steps.ts";

/** Records per script call. A larger call saves little more, and blocks Redis for longer. */
const BATCH = 16;
/** Longest record that shares a call, in characters. */
export const MAX_SHARED = 16_384;

interface StepCommit {
  readonly run: string;
  readonly steps: string;
  readonly epoch: number;
  readonly step: string;
  /** A JSON object that is not empty. */
  readonly record: string;
}

export type StepCommits = (commit: StepCommit) => Promise<StepCommitAnswer>;

/**
 * Returns a function that records steps. Records of one turn of the event loop share a script call: the executions of a worker
 * continue in bursts, and the fixed cost of a call is higher than that of a record. An error of one record, for example of a key
 * with a foreign type, does not affect the others.
 */
export function createStepCommits(runs: RedisRuns): StepCommits {
  const send = (each: readonly StepCommit[]) => runs.evaluate(commitStepsScript, { each });
  const batch = createTickBatch<StepCommit, () => StepCommitAnswer>(
    BATCH,
    async (each) => {
      try {
        return (await send(each)).map((answer) => () => answer);
      } catch (error) {
        if (each.length === 1 || !isReply(error)) throw error;
        return await Promise.all(each.map((commit) => alone(send, commit)));
      }
    },
    atEndOfTurn,
  );
  return async (commit) => (await batch(commit).answer)();
}

/** Repeats a record of a failed call. One that was stored is found. */
async function alone(
  send: (each: readonly StepCommit[]) => Promise<readonly StepCommitAnswer[]>,
  commit: StepCommit,
): Promise<() => StepCommitAnswer> {
  try {
    const [answer = { kind: "fenced" } as const] = await send([commit]);
    return () => answer;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

/** True for an error that Redis has returned, as opposed to a lost connection. */
function isReply(error: unknown): boolean {
  return error instanceof Error && error.name === "ReplyError";
}
