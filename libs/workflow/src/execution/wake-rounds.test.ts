import { expect, test } from "vitest";
import type { ObjectKey } from "@konverge/core";
import { WakeRounds } from "./wake-rounds.ts";

const keyOf = (name: string): ObjectKey => ({
  controller: "workflow.w",
  cluster: "default",
  resource: "runs",
  group: "konverge.dev",
  namespace: "_",
  name,
});

interface Bench {
  readonly rounds: WakeRounds;
  readonly reads: (readonly string[])[];
  readonly errors: Error[];
  /** Last waiting request by run. */
  readonly waiting: Map<string, number>;
  fail: boolean;
  /** True if a round is planned. */
  readonly isPlanned: boolean;
  /** Runs the planned round. */
  round(): Promise<void>;
}

const bench = (): Bench => {
  let next: (() => void) | undefined;
  const waiting = new Map<string, number>();
  const reads: (readonly string[])[] = [];
  const errors: Error[] = [];
  const self = {
    waiting,
    reads,
    errors,
    fail: false,
    get isPlanned() {
      return next !== undefined;
    },
    async round() {
      const call = next;
      next = undefined;
      call?.();
      await new Promise(setImmediate);
    },
    rounds: new WakeRounds({
      read: async (keys) => {
        reads.push(keys.map(({ name }) => name));
        if (self.fail) throw new Error("Redis is away");
        return keys.map(({ name }) => waiting.get(name) ?? 0);
      },
      onError: (error) => errors.push(error),
      after: (_, call) => {
        next = call;
        return () => {
          next = undefined;
        };
      },
    }),
  };
  return self;
};

test("reads all followed runs at once, and calls for each request since the begin", async () => {
  const { rounds, waiting, reads, ...the } = bench();
  const woken: string[] = [];
  const follow = (name: string) => {
    const wakeUps = rounds.of(keyOf(name));
    wakeUps.start(() => woken.push(name));
    return wakeUps;
  };
  follow("a");
  follow("b");
  waiting.set("c", 3);
  follow("c");
  await the.round();
  expect(woken).toEqual(["c"]);
  await the.round();
  waiting.set("a", 7);
  waiting.set("c", 4);
  await the.round();
  expect(woken).toEqual(["c", "a", "c"]);
  expect(reads).toEqual([
    ["a", "b", "c"],
    ["a", "b", "c"],
    ["a", "b", "c"],
  ]);
});

test("reads nothing while no run is followed", async () => {
  const the = bench();
  expect(the.isPlanned).toBe(false);
  const woken: number[] = [];
  const wakeUps = the.rounds.of(keyOf("a"));
  wakeUps.start(() => woken.push(1));
  await the.round();
  wakeUps.stop();
  await the.round();
  expect(the.isPlanned).toBe(false);
  expect(the.reads).toHaveLength(1);
  // What has arrived in between is found by the next round.
  the.waiting.set("a", 1);
  wakeUps.start(() => woken.push(2));
  await the.round();
  await the.round();
  expect(woken).toEqual([2]);
});

test("a run that another attempt of this process follows is not stopped by the first", async () => {
  const the = bench();
  const woken: string[] = [];
  const first = the.rounds.of(keyOf("a"));
  const second = the.rounds.of(keyOf("a"));
  first.start(() => woken.push("first"));
  second.start(() => woken.push("second"));
  first.stop();
  the.waiting.set("a", 1);
  await the.round();
  expect(woken).toEqual(["second"]);
});

test("reports an outage once, and continues after it", async () => {
  const the = bench();
  const woken: number[] = [];
  the.rounds.of(keyOf("a")).start(() => woken.push(1));
  the.fail = true;
  the.waiting.set("a", 1);
  for (let round = 0; round < 3; round += 1) await the.round();
  expect(the.errors.map(({ message }) => message)).toEqual(["Redis is away"]);
  the.fail = false;
  await the.round();
  expect(woken).toEqual([1]);
  await the.rounds.end();
  expect(the.isPlanned).toBe(false);
});
