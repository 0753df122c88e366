import type { Redis } from "ioredis";
import { TerminalError } from "@konverge/core";
import { defineWorkflow, type Workflow } from "@konverge/workflow";

/** Data of the tests, where the Redis user of a worker may write. */
const notes = (prefix: string) => `${prefix}:{notes}`;

/** Started bodies, in order. */
export const begunList = (prefix: string) => `${notes(prefix)}/begun`;

/** Bodies of a stopped process that has resumed. */
export const resumedList = (prefix: string) => `${notes(prefix)}/resumed`;

/** Results of a step that the code has seen. */
export const seenList = (prefix: string, step: string) => `${notes(prefix)}/seen/${step}`;

/** Three steps that log their start. The process can kill itself in a body or after a step's record, or stop. */
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
        await redis.rpush(seenList(prefix, name), String(random));
        sum += 1;
      }
      return sum;
    },
  );
}

/** A wait of each kind, a child, and an end that undoes two steps. Bodies log their start. */
export function makeTour(
  redis: Redis,
  prefix: string,
): { readonly tour: Workflow<undefined, void>; readonly child: Workflow<number, number> } {
  const begin = (name: string) => redis.rpush(begunList(prefix), name);
  const child: Workflow<number, number> = defineWorkflow(
    "double",
    { version: 1 },
    async (w, n: number) =>
      await w.step("double", async () => {
        await begin("double");
        return 2 * n;
      }),
  );
  const tour: Workflow<undefined, void> = defineWorkflow("tour", { version: 1 }, async (w) => {
    const undoable = async (name: string) =>
      await w.step(
        name,
        async () => {
          await begin(name);
          return name;
        },
        { undo: async () => void (await begin(`undo ${name}`)) },
      );
    await undoable("a");
    await w.sleep("pause", 20);
    const go = await w.signal<number>("go");
    const doubled = await w.child("child", child, go);
    await undoable("b");
    await w.step("end", async () => {
      await begin("end");
      throw new TerminalError(`as planned: ${doubled}`);
    });
  });
  return { tour, child };
}

/** The keys of the rounds whose step ran. */
export const countedSet = (prefix: string) => `${notes(prefix)}/counted`;

/** Counts its rounds up to `to`, with a step in each. */
export function makeCounter(
  redis: Redis,
  prefix: string,
): Workflow<{ readonly n: number; readonly to: number }, number> {
  return defineWorkflow(
    "counter",
    { version: 1 },
    async (w, { n, to }: { readonly n: number; readonly to: number }): Promise<number> => {
      const next = await w.step("add", async ({ idempotencyKey }) => {
        await redis.sadd(countedSet(prefix), idempotencyKey);
        return n + 1;
      });
      w.set("n", next);
      return next === to ? next : await w.continueWith({ n: next, to });
    },
  );
}

/** Three rounds with a step, a signal and a child each. Bodies log their start. */
export function makeRounds(
  redis: Redis,
  prefix: string,
): { readonly rounds: Workflow<number, number>; readonly child: Workflow<number, number> } {
  const begin = (name: string) => redis.rpush(begunList(prefix), name);
  const child: Workflow<number, number> = defineWorkflow(
    "double-round",
    { version: 1 },
    async (w, n: number) =>
      await w.step("double", async () => {
        await begin(`double ${n}`);
        return 2 * n;
      }),
  );
  const rounds: Workflow<number, number> = defineWorkflow(
    "rounds",
    { version: 1 },
    async (w, sum: number): Promise<number> => {
      await w.step("begin", async () => await begin(`begin ${w.round}`));
      const next = sum + (await w.child("child", child, await w.signal<number>("go")));
      return w.round === 3 ? next : await w.continueWith(next);
    },
  );
  return { rounds, child };
}
