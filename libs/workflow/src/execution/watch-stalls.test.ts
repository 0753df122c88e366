import { expect, test } from "vitest";
import { DeliveryOrder } from "../journal/delivery-order.ts";
import { ExecutionScope, type Interrupt } from "../journal/execution-scope.ts";
import type { Held } from "../store/run-journal-store.ts";
import { watchStalls } from "./watch-stalls.ts";

interface Watched {
  readonly scope: ExecutionScope;
  readonly everyMs: number;
  readonly isEnded: boolean;
  check(times: number): void;
  interrupt(): Promise<Interrupt | undefined>;
}

const FAILING = { status: "failed", error: { code: "internal", message: "" } } as const;

const watch = ({ failing = false, cancelPending = false, offersAllUndos = true } = {}): Watched => {
  const scope = new ExecutionScope(new DeliveryOrder(new Map()));
  let check = (): void => undefined;
  let everyMs = 0;
  let isEnded = false;
  watchStalls({
    scope,
    timeoutMs: 10_000,
    offersAllUndos: () => offersAllUndos,
    journal: { cancelPending, held: (failing ? { failing: FAILING } : {}) as Held },
    every: (ms, call) => {
      everyMs = ms;
      check = call;
      return () => {
        isEnded = true;
      };
    },
  });
  return {
    scope,
    everyMs,
    get isEnded() {
      return isEnded;
    },
    check: (times) => {
      for (let count = 0; count < times && !isEnded; count += 1) check();
    },
    interrupt: () => Promise.race([scope.interrupted, Promise.resolve(undefined)]),
  };
};

test("blocks the run after the timeout, with the last step", async () => {
  const watched = watch();
  expect(watched.everyMs).toBe(500);
  watched.scope.latest = "charge";
  watched.check(19);
  expect(await watched.interrupt()).toBeUndefined();
  watched.check(1);
  expect(await watched.interrupt()).toMatchObject({
    kind: "blocked",
    reason: expect.stringContaining(
      'not a call on w for 10 s, after step "charge"; move it into the body of a step',
    ) as string,
    afterMs: 600_000,
  });
  expect(watched.isEnded).toBe(true);
});

test("names no step if none has ended", async () => {
  const watched = watch();
  watched.check(20);
  expect(await watched.interrupt()).toMatchObject({
    reason: expect.stringContaining("before its first step") as string,
  });
});

test("counts no time in which a verb was at work, even briefly", async () => {
  const watched = watch();
  watched.check(19);
  await watched.scope.run(async () => undefined);
  watched.check(19);
  const { promise, resolve } = Promise.withResolvers<void>();
  const body = watched.scope.run(() => promise);
  watched.check(100);
  resolve();
  await body;
  watched.check(19);
  expect(await watched.interrupt()).toBeUndefined();
  watched.check(2);
  expect(await watched.interrupt()).toMatchObject({ kind: "blocked" });
});

test.each([
  { state: { cancelPending: true }, kind: "cancelled" },
  { state: { failing: true }, kind: "waiting" },
  { state: { failing: true, cancelPending: true }, kind: "waiting" },
])("waits only a moment for the function of a run with %o", async ({ state, kind }) => {
  const watched = watch(state);
  watched.check(1);
  expect(await watched.interrupt()).toBeUndefined();
  watched.check(1);
  expect(await watched.interrupt()).toMatchObject({ kind });
});

test("ends with the execution", async () => {
  const watched = watch();
  void watched.scope.interrupt({ kind: "lost" });
  watched.check(1);
  expect(watched.isEnded).toBe(true);
  expect(await watched.interrupt()).toEqual({ kind: "lost" });
});

test.each([{ failing: true }, { cancelPending: true }])(
  "a run that is to end waits the whole timeout while undos are missing, with %o",
  async (state) => {
    const watched = watch({ ...state, offersAllUndos: false });
    watched.check(19);
    expect(await watched.interrupt()).toBeUndefined();
    watched.check(1);
    expect(await watched.interrupt()).toBeDefined();
  },
);
