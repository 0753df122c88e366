import type { Redis } from "ioredis";
import { defineWorkflow, type Workflow } from "@konverge/workflow";

/** Bodies that were begun, in order. */
export const begunList = (prefix: string) => `${prefix}:begun`;

/** Three steps that write down that they have begun; the process can kill itself in a body, or right behind a step's record. */
export function makeThreeSteps(
  redis: Redis,
  prefix: string,
  { dieIn, dieAfter }: { readonly dieIn?: string; readonly dieAfter?: string } = {},
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
