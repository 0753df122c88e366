import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TerminalError } from "@konverge/core";
import { defineWorkflow, type AnyWorkflow } from "@konverge/workflow";
import { createRedisRunStore } from "../../../libs/workflow/src/store/redis-run-store.ts";
import {
  runExecution,
  type ExecutionEnd,
} from "../../../libs/workflow/src/execution/run-execution.ts";
import type { Held } from "../../../libs/workflow/src/store/run-journal-store.ts";
import { startRun } from "../../../libs/workflow/src/store/start-run.ts";
import type { RunStore } from "../../../libs/workflow/src/store/run-store.ts";
import { createMemoryRunStore } from "../../../libs/workflow/src/testing/memory-run-store.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { noChildren } from "../../support/no-children.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

console.log(`KONVERGE_TEST_SEED=${seed}`);
const harness = useQueues();
let redis: Redis;
beforeAll(() => {
  redis = new Redis(harness.url);
});
afterAll(async () => {
  await redis.quit();
});

type Call = "claim" | "commit" | "note" | "leave" | "start";
const CALLS: readonly Call[] = ["claim", "commit", "note", "leave", "start"];
/** `again`: the response is lost with its connection, and the call is repeated. */
const WHENS = ["before", "after", "again"] as const;
interface CrashPoint {
  readonly at: number;
  readonly when: (typeof WHENS)[number];
}
class Died extends Error {}

/** Every verb, a retry, and an end with undos. */
function makeTour(bodies: string[]) {
  const child = defineWorkflow("child", { version: 1 }, async (w, n: number) => {
    return await w.step("double", async () => {
      bodies.push("child/double");
      return 2 * n;
    });
  });
  const body = (name: string) => async () => {
    bodies.push(name);
    return name;
  };
  const tour = defineWorkflow("tour", { version: 1 }, async (w) => {
    const undo = (name: string) => ({ undo: () => void bodies.push(`undo ${name}`) });
    await w.step("a", body("a"), undo("a"));
    await w.now();
    await w.sleep("pause", 2);
    const first = await w.signal<number>("go");
    const second = await w.signal<number>("go");
    const none = await w.signal("never", { timeout: 2 });
    const doubled = await w.child("child", child, first + second);
    await Promise.all([w.step("b1", body("b1")), w.step("b2", body("b2"), undo("b2"))]);
    await w.step("end", async () => {
      bodies.push("end");
      throw new TerminalError(`${first} ${second} ${String(none)} ${doubled}`);
    });
  });
  return { tour, child };
}

/** Crashes at the n-th call of the store, before it or with its response lost; or makes it twice. */
function fragile(
  store: RunStore,
  point: CrashPoint | undefined,
): RunStore & { readonly calls: string[] } {
  const calls: string[] = [];
  const wrapped = Object.fromEntries(
    CALLS.map((name) => [
      name,
      async (...args: unknown[]) => {
        const here = calls.push(`${name} ${typeof args[1] === "string" ? args[1] : ""}`) - 1;
        if (point?.at === here && point.when === "before") throw new Died();
        const call = store[name] as (...all: unknown[]) => Promise<unknown>;
        const answer = await call(...args);
        if (point?.at === here && point.when === "again") return await call(...args);
        if (point?.at === here && point.when === "after") throw new Died();
        return answer;
      },
    ]),
  );
  return { ...store, ...wrapped, calls };
}

/** Runs one execution, without a queue. */
async function activateAlone(
  store: RunStore,
  workflow: AnyWorkflow,
  held: Held,
): Promise<ExecutionEnd> {
  return await runExecution({
    store,
    workflow,
    held,
    stopped: new AbortController().signal,
    startChild: {
      ...noChildren,
      start: (run) => startRun(store, async () => undefined, run),
      get: async (ref) => await store.get(ref),
    },
    clock: () => performance.now(),
    random: () => 1,
  });
}

/** Two rounds, each with a signal and a child, which has two rounds as well. */
function makeRounds(bodies: string[]) {
  const child = defineWorkflow("child", { version: 1 }, async (w, n: number): Promise<number> => {
    const doubled = await w.step("double", async () => {
      bodies.push(`double ${n}`);
      return 2 * n;
    });
    return w.round === 1 ? await w.continueWith(doubled) : doubled;
  });
  const tour = defineWorkflow("tour", { version: 1 }, async (w, sum: number): Promise<number> => {
    await w.step("begin", async () => void bodies.push(`begin ${w.round}`));
    const next = (sum ?? 0) + (await w.child("child", child, await w.signal<number>("go")));
    return w.round === 2 ? next : await w.continueWith(next);
  });
  return { tour, child };
}

type Programs = typeof makeTour | typeof makeRounds;

async function play(plain: RunStore, point?: CrashPoint, make: Programs = makeTour) {
  const bodies: string[] = [];
  const { tour, child } = make(bodies);
  const store = fragile(plain, point);
  const definitions = { tour, child, next: child };
  const refs = {
    tour: { workflow: "tour", id: "r" },
    child: { workflow: "child", id: "r.child" },
    next: { workflow: "child", id: "r@2.child" },
  };
  const lost: Held[] = [];
  await plain.start({ ...refs.tour, version: 1, input: undefined });
  for (const n of [1, 2]) await plain.signal(refs.tour, { name: "go", id: String(n), payload: n });

  const execute = async (
    which: keyof typeof refs,
    lease: number,
  ): Promise<ExecutionEnd | undefined> => {
    const claimed = await store.claim(refs[which], { lease, owner: String(lease) });
    if (claimed.kind !== "held") return undefined;
    lost.push(claimed);
    return await activateAlone(store, definitions[which], claimed);
  };
  for (let lease = 1; lease < 200; lease += 1) {
    for (const which of ["tour", "child", "next"] as const) {
      try {
        const end = await execute(which, lease);
        if (end?.kind === "error" && !(end.error instanceof Died)) throw end.error;
      } catch (error) {
        if (!(error instanceof Died)) throw error;
      }
    }
    const run = await plain.get(refs.tour);
    if (run?.endedAtMs !== undefined) break;
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return {
    bodies,
    calls: store.calls,
    lost,
    run: await plain.get(refs.tour),
    steps: await plain.steps(refs.tour),
  };
}

const EXPECTED_BODIES = ["a", "child/double", "b1", "b2", "end", "undo b2", "undo a"];
const EXPECTED_STEPS = [
  "a",
  "now",
  "pause",
  "go",
  "go#2",
  "never",
  "child",
  "b1",
  "b2",
  "end",
  "undo:b2",
  "undo:a",
];
let serial = 0;
const kinds = {
  Redis: () =>
    createRedisRunStore({
      call: (run) => run(redis),
      prefix: `${harness.prefix}:${(serial += 1)}`,
      cluster: "c",
      retentionMs: 60_000,
    }),
  memory: () => createMemoryRunStore({ now: () => Math.floor(performance.now()) }),
};

/** Every crash at every call; in the short form on Redis, one per call, which the seed rotates. */
function pointsOf(calls: readonly string[], store: string) {
  return calls.flatMap((call, at) =>
    WHENS.filter(
      (_, index) => isLongRun || store !== "Redis" || index === (at + seed) % WHENS.length,
    ).map((when) => ({ at, when, call })),
  );
}

describe.each(Object.entries(kinds))("%s", (title, open) => {
  test("I2, I3, I4, I8: a crash before or after any call of the store, or a repeated call, changes no result", async () => {
    const whole = await play(open());
    expect(whole.bodies).toEqual(EXPECTED_BODIES);
    expect(whole.calls.length).toBeGreaterThan(20);
    for (const point of pointsOf(whole.calls, title)) {
      const { bodies, run, steps } = await play(open(), point);
      const what = `${point.when} ${point.call}`;
      expect(run, what).toMatchObject({
        status: "failed",
        error: { message: 'step "end" failed: 1 2 null 6' },
      });
      expect([...steps.keys()].toSorted(), what).toEqual(EXPECTED_STEPS.toSorted());
      const order = [...steps].toSorted(([, a], [, b]) => (a.seq ?? 0) - (b.seq ?? 0));
      // Each was recorded once, also where the call was made twice.
      const seqs = order.map(([, { seq }]) => seq);
      expect(seqs, what).toEqual([...seqs.keys()].map((index) => index + 1));
      expect(
        order.map(([name]) => name).filter((name) => !/^b\d|:/.test(name)),
        what,
      ).toEqual(EXPECTED_STEPS.filter((name) => !/^b\d|:/.test(name)));
      // One execution crashed, so at most the bodies in flight ran twice: two branches.
      const again = bodies.length - EXPECTED_BODIES.length;
      expect(again, what).toBeLessThanOrEqual(point.call.startsWith("commit b") ? 2 : 1);
      if (point.when !== "before" && !point.call.startsWith("commit b"))
        expect(again, what).toBe(0);
      expect([...new Set(bodies)].toSorted(), what).toEqual(EXPECTED_BODIES.toSorted());
      const undone = bodies.filter(
        (name, index) => name.startsWith("undo") && bodies.indexOf(name) === index,
      );
      expect(undone, what).toEqual(["undo b2", "undo a"]);
    }
  });

  test("a crash before or after any call of the store, or a repeated call, changes no result of a run of several rounds", async () => {
    const whole = await play(open(), undefined, makeRounds);
    const expected = ["begin 1", "double 1", "double 2", "begin 2", "double 2", "double 4"];
    expect(whole.bodies).toEqual(expected);
    for (const point of pointsOf(whole.calls, title)) {
      const { bodies, run, steps, lost } = await play(open(), point, makeRounds);
      const what = `${point.when} ${point.call} (${point.at})`;
      expect(run, what).toMatchObject({ status: "done", result: 12, round: 2, input: 4 });
      expect([...steps.keys()], what).toEqual(expect.arrayContaining(["begin", "go", "child"]));
      expect(steps.size, what).toBe(3);
      expect([...new Set(bodies)].toSorted(), what).toEqual([...new Set(expected)].toSorted());
      expect(bodies.length - expected.length, what).toBeLessThanOrEqual(1);
      if (point.when !== "before") expect(bodies, what).toEqual(expected);
      expect(lost.length, what).toBeGreaterThan(3);
    }
  });

  test("five steps without a wait take seven calls", async () => {
    const store = fragile(open(), undefined);
    const five = defineWorkflow("five", { version: 1 }, async (w) => {
      for (const name of ["a", "b", "c", "d", "e"]) await w.step(name, async () => 1);
    });
    await store.start({ workflow: "five", id: "r", version: 1, input: undefined });
    store.calls.length = 0;
    const held = await store.claim({ workflow: "five", id: "r" }, { lease: 1, owner: "x" });
    if (held.kind !== "held") throw new Error(held.kind);
    await activateAlone(store, five, held);
    expect(store.calls.map((call) => call.split(" ")[0])).toEqual([
      "claim",
      ...Array.from({ length: 5 }, () => "commit"),
      "leave",
    ]);
  });

  test("P8: rejects every call of an outdated execution", async () => {
    const store = open();
    const { lost, run, steps } = await play(store);
    for (const held of lost.filter(({ workflow }) => workflow === "tour").slice(0, -1)) {
      for (const late of [
        () => store.commit(held, "late", { kind: "step", value: 1 }),
        () => store.commit(held, "a", { kind: "step", value: "other" }),
        () => store.note(held, "late", { attempts: 1, delayMs: 1 }),
        () => store.leave(held, { kind: "done", result: 1 }),
        () => store.leave(held, { kind: "waiting" }),
      ]) {
        await expect(late()).rejects.toThrow(/another execution holds/);
      }
    }
    // Its sleeps may be over before it waits for them, so that few executions remain.
    expect(lost.length).toBeGreaterThan(1);
    expect(await store.get({ workflow: "tour", id: "r" })).toEqual(run);
    expect(await store.steps({ workflow: "tour", id: "r" })).toEqual(steps);
  });
});
