import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import type { ReconcileContext } from "./reconcile-context.ts";
import { withMiddleware, type Middleware } from "./middleware.ts";

const context = {} as ReconcileContext;
const again = { kind: "requeueAfter", afterMs: 1 } as const;

test("runs in order around the handler", async () => {
  const seen: string[] = [];
  const around =
    (name: string): Middleware =>
    async (_context, next) => {
      seen.push(`${name} in`);
      const result = await next();
      seen.push(`${name} out`);
      return result;
    };
  const handler = withMiddleware([around("a"), around("b")], async () => {
    seen.push("handler");
  });
  await handler(context);
  expect(seen).toEqual(["a in", "b in", "handler", "b out", "a out"]);
});

test("returns the handler itself without middleware", () => {
  const handler = async () => undefined;
  expect(withMiddleware([], handler)).toBe(handler);
});

const cases: readonly [string, Middleware, unknown][] = [
  ["a forgotten return keeps the result", async (_c, next) => void (await next()), again],
  ["a next that is not awaited is waited for", async (_c, next) => void next(), again],
  ["a result of its own wins", async () => ({ kind: "awaitChange" }), { kind: "awaitChange" }],
  ["not calling next skips the handler", async () => undefined, undefined],
  ["a middleware that is no async function", (_c, next) => next(), again],
];
test.each(cases)("%s", async (_title, middleware, expected) => {
  expect(await withMiddleware([middleware], async () => again)(context)).toEqual(expected);
});

test("runs the handler once if next is called twice", async () => {
  let runs = 0;
  const twice: Middleware = async (_context, next) => {
    await Promise.all([next(), next()]);
  };
  await withMiddleware([twice], async () => {
    runs += 1;
  })(context);
  expect(runs).toBe(1);
});

test("passes errors through unless a middleware catches them", async () => {
  const failing = () => {
    throw new Error("at once");
  };
  const passing: Middleware = async (_context, next) => next();
  const careless: Middleware = async (_context, next) => void next();
  const catching: Middleware = async (_context, next) => {
    await next().catch(() => undefined);
  };
  await expect(withMiddleware([passing], failing)(context)).rejects.toThrow("at once");
  await expect(
    withMiddleware([careless], async () => {
      await Promise.resolve();
      throw new Error("later");
    })(context),
  ).rejects.toThrow("later");
  await expect(withMiddleware([catching], failing)(context)).resolves.toBeUndefined();
});

const turns = async (count: number) => {
  for (let turn = 0; turn < count; turn += 1) await setImmediate();
};
/** What a middleware does with `next` beside other work of some turns. */
const uses: Readonly<Record<string, (work: number) => Middleware>> = {
  "ignores it": (work) => async (_context, next) => {
    void next();
    await turns(work);
  },
  "awaits it later": (work) => async (_context, next) => {
    const running = next();
    await turns(work);
    await running;
  },
  "returns it later": (work) => async (_context, next) => {
    const running = next();
    await turns(work);
    return running;
  },
  "awaits it, then works": (work) => async (_context, next) => {
    await next();
    await turns(work);
  },
};
test.each(Object.entries(uses))(
  "a middleware that %s fails with the handler and keeps its result, whichever ends first",
  async (_title, use) => {
    for (let work = 0; work < 5; work += 1) {
      for (let ofHandler = 0; ofHandler < 10; ofHandler += 1) {
        const handle = (handler: () => void) =>
          withMiddleware([use(work), use(work)], async () => {
            await turns(ofHandler);
            handler();
            return again;
          })(context);
        expect(await handle(() => undefined)).toEqual(again);
        const failed = handle(() => {
          throw new Error("failed");
        });
        await expect(failed).rejects.toThrow("failed");
      }
    }
  },
);
