import type { ObjectRef } from "@konverge/workflow";
import type { VerbFleet } from "./verb-fleet.ts";
import type { VerbOp, VerbProgram } from "./verb-programs.ts";
import { timesOut, waitNameOf, type WaitOp } from "./verb-waits.ts";

export interface WaitFindings {
  readonly wrong: readonly string[];
  /** The delay of each wait's end after the change that met it, in ms. */
  readonly lateMs: readonly number[];
}

/** Checks that every wait ended by its condition, not before the actor's change, or by its timeout, not before that. */
export async function checkWaits(
  { workflows, actor }: VerbFleet,
  programs: readonly { readonly id: string; readonly program: VerbProgram }[],
): Promise<WaitFindings> {
  const wrong: string[] = [];
  const lateMs: number[] = [];
  const checkRun = async (id: string, program: VerbProgram): Promise<void> => {
    const steps = await workflows.steps({ workflow: "verbs", id });
    const recordOf = (name: string) => steps.find((step) => step.name === name);
    const checkWait = (op: WaitOp) => {
      const made = recordOf(op.name);
      const wait = recordOf(waitNameOf(op));
      const found = (detail: string) => wrong.push(`${id}: ${op.join} of "${op.name}" ${detail}`);
      if (made === undefined || wait === undefined) return found("has no record");
      const { atMs = 0, value, error } = wait;
      if (timesOut(op)) {
        if (error?.code !== "wait_timeout") found(`did not time out: ${error?.message ?? "met"}`);
        else if (atMs < (made.atMs ?? 0) + op.timeoutMs) found("timed out early");
        return;
      }
      if (error !== undefined) return found(`failed: ${error.message}`);
      const refs = made.value as readonly ObjectRef[];
      const met = op.join === "any" ? [refs[(value as { readonly index: number }).index]] : refs;
      const acts = met.map((ref) => actor.actedAtMs.get(ref?.uid ?? "") ?? Infinity);
      const metAtMs = Math.max(...acts);
      if (atMs < metAtMs) found(`ended at ${atMs}, its condition was met at ${metAtMs}`);
      else lateMs.push(atMs - metAtMs);
    };
    const check = async (op: VerbOp): Promise<void> => {
      if (op.kind === "wait") checkWait(op);
      if (op.kind === "child") await checkRun(`${id}.${op.name}`, op.program);
      if (op.kind === "all") for (const each of op.branches.flat()) await check(each);
    };
    for (const op of program.ops) await check(op);
  };
  for (const { id, program } of programs) await checkRun(id, program);
  return { wrong, lateMs: lateMs.toSorted((a, b) => a - b) };
}
