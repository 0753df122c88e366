import type { Redis } from "ioredis";
import { defineWorkflow, type Workflow } from "@konverge/workflow";

/** Bodies that were begun, in order. */
export const begunList = (prefix: string) => `${prefix}:begun`;

/** Bodies of a process that was stopped for a while, when it goes on. */
export const resumedList = (prefix: string) => `${prefix}:resumed`;

/** Three steps that write down that they have begun; the process can kill itself in a body, or right behind a step's record, or halt. */
export function makeThreeSteps(
  redis: Redis,
  prefix: string,
  { dieIn, dieAfter, haltIn }: Partial<Record<"dieIn" | "dieAfter" | "haltIn", string>> = {},
): Workflow<{ readonly start: number }, number> {
  const die = () => process.kill(process.pid, "SIGKILL");
  return defineWorkflow(
    "three-steps",
    { version: 1 },
    async (w, { start }: { readonly start: number }) => {
      let sum = start;
      for (const name of ["one", "two", "three"]) {
        const random = await w.step(name, async () => {
          await redis.rpush(begunList(prefix), name);
          if (dieIn === name) die();
          if (haltIn === name) {
            process.kill(process.pid, "SIGSTOP");
            await redis.rpush(resumedList(prefix), name);
          }
          return Math.random();
        });
        if (dieAfter === name) die();
        await redis.rpush(`${prefix}:seen:${name}`, String(random));
        sum += 1;
      }
      return sum;
    },
  );
}
