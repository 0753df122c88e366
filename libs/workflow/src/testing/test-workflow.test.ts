import { describe, expect, test } from "vitest";
import { failureBackoff, KonvergeError, TerminalError, type Duration } from "@konverge/core";
import { z } from "zod";
import { defineWorkflow, type WorkflowContext } from "../define/define-workflow.ts";
import { scrambleCodec } from "../../../../test/support/scramble-codec.ts";
import type { TestRun } from "./test-run.ts";
import { testWorkflow } from "./test-workflow.ts";

const seen: string[] = [];
const smoke = defineWorkflow("smoke", { version: 1 }, async (w, input: { pool: string }) => {
  await w.sleep("warm up", "1m");
  return await w.step("probe", async () => `${input.pool} answers`);
});
const rollout = defineWorkflow("rollout", { version: 1 }, async (w, input: { name: string }) => {
  const pool = await w.step("create", async () => `pool ${input.name}`, {
    undo: (made) => void seen.push(`delete ${made}`),
  });
  await w.sleep("soak", "30m");
  const answer = await w.signal<{ ok: boolean }>("approve", { timeout: "24h" });
  if (answer === null) throw new TerminalError("nobody approved");
  await w.step("resize", async () => 1, { undo: () => void seen.push("shrink") });
  const probe = await w.child("smoke", smoke, { pool });
  return { probe, at: await w.now() };
});
const begin = (options = {}): TestRun => {
  seen.length = 0;
  return testWorkflow(rollout, { name: "web" }, { children: [smoke], ...options });
};
const play = async (t: TestRun) => {
  expect(await t.settle()).toMatchObject({ status: "waiting", waitingUntilMs: 1_800_000 });
  expect(await t.advance("29m")).toMatchObject({ status: "waiting" });
  expect((await t.steps()).has("approve")).toBe(false);
  await t.advance("1m");
  await t.signal("approve", { ok: true });
  return await t.advance("1m");
};

test.each([{ replayEveryStep: false }, { replayEveryStep: true }])(
  "a run plays through its waits at the pace of the test, with %o",
  async (options) => {
    const t = begin(options);
    expect(await play(t)).toMatchObject({
      status: "done",
      result: { probe: "pool web answers", at: 1_860_000 },
    });
    expect(t.bodies).toEqual(["create", "resize", "probe"]);
    await t.replay();
  },
);

test.each(["create", "soak", "approve", "resize", "smoke", "now"])(
  "a crash behind %s repeats nothing",
  async (step) => {
    const t = begin();
    t.crashAfter(step);
    expect(await play(t)).toMatchObject({ status: "done" });
    expect(t.bodies).toEqual(["create", "resize", "probe"]);
  },
);

test.each([{ crash: undefined }, { crash: "approve" }])(
  "a record has the begin of its step or wait across other wake-ups, with crash %o",
  async ({ crash }) => {
    const t = begin();
    await t.advance("30m");
    await t.advance("5m");
    // The signal does not fit, so the wait continues.
    await t.signal("other");
    const approve = { step: "approve", kind: "signal", sinceMs: 1_800_000 };
    expect((await t.run()).waits).toMatchObject([approve]);
    await t.advance("5m");
    if (crash !== undefined) t.crashIn(crash);
    await t.signal("approve", { ok: true });
    const steps = await t.steps();
    expect(steps.get("create")).toMatchObject({ startedAtMs: 0, atMs: 0 });
    expect(steps.get("soak")).toMatchObject({ startedAtMs: 0, atMs: 1_800_000 });
    expect(steps.get("approve")).toMatchObject({ startedAtMs: 1_800_000, atMs: 2_400_000 });
  },
);

test("a retried step begins with its first attempt, an undo with its own", async () => {
  const t = begin();
  const busy = new KonvergeError("deferred", "busy", { retryAfterMs: 60_000 });
  t.failStep("create", busy, { times: 2 });
  expect((await t.settle()).waits).toMatchObject([{ step: "create", sinceMs: 0, untilMs: 60_000 }]);
  await t.advance("2m");
  expect((await t.steps()).get("create")).toMatchObject({ startedAtMs: 0, atMs: 120_000 });
  await t.advance("25h");
  const undo = (await t.steps()).get("undo:create");
  expect(undo).toMatchObject({ kind: "undo", startedAtMs: undo?.atMs });
});

test("marks only the first record after a lost worker", async () => {
  const t = begin();
  t.crashIn("create");
  t.crashAfter("approve");
  expect(await play(t)).toMatchObject({ status: "done" });
  const reported = [...(await t.steps())].filter(([, { workerLost }]) => workerLost);
  expect(reported.map(([name]) => name)).toEqual(["create", "resize"]);
});

test("a crash in a body repeats only that body", async () => {
  const t = begin();
  t.crashIn("resize");
  expect(await play(t)).toMatchObject({ status: "done" });
  expect(t.bodies).toEqual(["create", "resize", "resize", "probe"]);
});

test("fails a step as often as set, then undoes earlier steps", async () => {
  const twice = begin();
  twice.failStep("create", new Error("busy"), { times: 2 });
  expect(await play(twice)).toMatchObject({ status: "done" });
  expect(twice.bodies).toEqual(["create", "create", "create", "resize", "probe"]);

  const never = begin();
  never.failStep("resize", new TerminalError("no quota"));
  await never.advance("30m");
  expect(await never.signal("approve", { ok: true })).toMatchObject({ status: "failed" });
  expect(seen).toEqual(["shrink", "delete pool web"]);
  await never.replay();
});

test.each([false, true])(
  "the end of a wait and a cancellation undo, replay after every step: %s",
  async (replayEveryStep) => {
    const late = begin({ replayEveryStep });
    expect(await late.advance("25h")).toMatchObject({
      status: "failed",
      error: { message: "nobody approved" },
    });
    expect(seen).toEqual(["delete pool web"]);
    const cancelled = begin({ replayEveryStep });
    expect(await cancelled.cancel()).toMatchObject({ status: "cancelled" });
    expect(seen).toEqual(["delete pool web"]);
  },
);

test.each(["failStep", "crashAfter", "crashIn"] as const)(
  "%s of a step that the run never came to is a mistake of the test",
  async (how) => {
    const t = begin();
    if (how === "failStep") t.failStep("creat", new Error("busy"));
    else t[how]("creat");
    await t.advance("30m");
    await expect(t.advance("24h")).rejects.toThrow(
      `the run ended without reaching ${how}("creat"); its steps: create, soak, approve, undo:create`,
    );
  },
);

test("replay() detects nondeterministic code", async () => {
  let calls = 0;
  const impure = defineWorkflow("impure", { version: 1 }, async (w) => {
    calls += 1;
    await w.step(`step ${calls}`, async () => calls);
    await w.sleep("pause", "1h");
  });
  const t = testWorkflow(impure, undefined);
  await t.settle();
  await expect(t.replay()).rejects.toThrow("replay executed step 2 again");
});

test("fails the run with a suggested fix if a result cannot be stored", async () => {
  const wide = defineWorkflow("wide", { version: 1 }, async (w) => {
    await w.step("big", async () => "x".repeat(1_100_000));
  });
  expect(await testWorkflow(wide, undefined).settle()).toMatchObject({
    status: "failed",
    error: { message: expect.stringContaining("the limit is 1048576") as string },
  });
});

test("blocks the run with a suggested fix if the input of a child cannot be stored", async () => {
  const odd = defineWorkflow("odd", { version: 1 }, async (w) => {
    await w.child("smoke", smoke, { pool: new Date() as unknown as string });
  });
  expect(await testWorkflow(odd, undefined, { children: [smoke] }).settle()).toMatchObject({
    status: "blocked",
    blockedReason: expect.stringContaining("/pool is an instance of Date") as string,
  });
});

test("returns a step's idempotency key outside its body", async () => {
  const charge = defineWorkflow("charge", { version: 1 }, async (w) => {
    const keys = [];
    for (let n = 0; n < 2; n++) keys.push(await w.step("charge", (k) => k.idempotencyKey));
    return [keys, [w.idempotencyKey("charge"), w.idempotencyKey("charge#2")]];
  });
  const { result } = await testWorkflow(charge, undefined, { replayEveryStep: true }).settle();
  const [inside, outside] = result as string[][];
  expect(outside).toEqual(inside);
  expect(new Set(inside).size).toBe(2);
});

test("random defaults and transforms of schemas give one value in all executions", async () => {
  const inputs: unknown[] = [];
  const signals: unknown[] = [];
  const order = z.object({
    id: z.string().default(() => crypto.randomUUID()),
    size: z.string().transform((text) => text.length),
  });
  const parsing = defineWorkflow("parsing", { version: 1, input: order }, async (w, input) => {
    inputs.push(input);
    await w.step("a", () => null);
    signals.push(await w.signal("go", { schema: order }));
    await w.step("b", () => null);
  });
  const t = testWorkflow(parsing, { size: "abc" } as never, { replayEveryStep: true });
  await t.settle();
  expect(await t.signal("go", { size: "ab" })).toMatchObject({ status: "done" });
  await t.replay();
  expect(inputs.length).toBeGreaterThan(3);
  expect(new Set(inputs.map((input) => JSON.stringify(input))).size).toBe(1);
  expect(inputs[0]).toMatchObject({ size: 3 });
  expect(signals.length).toBeGreaterThan(1);
  expect(new Set(signals.map((signal) => JSON.stringify(signal))).size).toBe(1);
  expect(signals[0]).toMatchObject({ size: 2 });
});

test("a schema whose result cannot be recorded fails the run", async () => {
  const at = z.object({ at: z.coerce.date() });
  const dated = defineWorkflow("dated", { version: 1, input: at }, async () => null);
  expect(await testWorkflow(dated, { at: "2026-01-01" } as never).settle()).toMatchObject({
    status: "failed",
    error: { message: expect.stringContaining("/at is an instance of Date") as string },
  });
});

test("a failed run shows where its function and its step failed", async () => {
  function dump(): never {
    throw new TypeError("no disk");
  }
  const failing = defineWorkflow("failing", { version: 1 }, async function backUp(w) {
    await w.step("dump", () => dump(), { retry: { attempts: 1 } });
  });
  const t = testWorkflow(failing, undefined);
  const { error } = await t.settle();
  const place = expect.stringMatching(
    /^at (async )?(dump|backUp) \(.*test-workflow\.test\.ts:\d+:\d+\)$/,
  );
  expect(error).toMatchObject({ code: "step_failed" });
  expect(error?.frames).toEqual(expect.arrayContaining([place, "caused by TypeError"]));
  expect((await t.steps()).get("dump")?.error).toMatchObject({
    code: "TypeError",
    frames: expect.arrayContaining([expect.stringMatching(/^at dump \(/)]) as string[],
  });
});

const hung = (undone: string[]) =>
  defineWorkflow("hung", { version: 1, stallTimeout: "20ms" }, async (w) => {
    await w.step("create", async () => "web", {
      undo: (name) => void undone.push(`delete ${name}`),
    });
    await new Promise(() => undefined);
  });

test("a function that awaits something other than a verb blocks the run", async () => {
  const t = testWorkflow(hung([]), undefined);
  const reason = expect.stringContaining(
    'is not a call on w for 0.02 s, after step "create"',
  ) as string;
  expect(await t.settle()).toMatchObject({ status: "blocked", blockedReason: reason });
  expect(await t.advance("10m")).toMatchObject({ status: "blocked" });
  expect(t.bodies).toEqual(["create"]);
});

test.each([{ crash: undefined }, { crash: "undo:create" }])(
  "a cancellation ends a run whose function reaches no verb, with crash %o",
  async ({ crash }) => {
    const undone: string[] = [];
    const t = testWorkflow(hung(undone), undefined);
    await t.settle();
    if (crash !== undefined) t.crashAfter(crash);
    expect(await t.cancel()).toMatchObject({
      status: "cancelled",
      error: { code: "cancelled", message: "the run was cancelled" },
    });
    expect(undone).toEqual(["delete web"]);
  },
);

test("signals that do not fit are no steps", async () => {
  const schema = z.object({ by: z.string() });
  const workflow = defineWorkflow("strict", { version: 1 }, async (w) => {
    await w.signal("approve", { schema });
    return await w.step("finish", async () => "ok");
  });
  const t = testWorkflow(workflow, undefined);
  for (let n = 0; n < 150; n += 1) await t.signal("approve", { bye: n });
  expect(await t.signal("approve", { by: "ann" })).toMatchObject({ status: "done" });
  expect([...(await t.steps()).keys()]).toEqual(["approve", "finish"]);
});

test("a timeout of a month does not end a step at once", async () => {
  const workflow = defineWorkflow("month", { version: 1 }, async (w) => {
    const body = () => new Promise<string>((resolve) => setImmediate(() => resolve("ok")));
    return await w.step("slow", body, { timeout: "30d", retry: { attempts: 1 } });
  });
  expect(await testWorkflow(workflow, undefined).settle()).toMatchObject({ result: "ok" });
});

test.each([1e300, NaN, -1, "1e9d"] as Duration[])(
  "a duration of %s is refused at the call, which names it",
  async (duration) => {
    const calls: readonly (readonly [string, (w: WorkflowContext) => Promise<unknown>])[] = [
      ["the duration of sleep", (w) => w.sleep("a", duration)],
      ["the timeout of signal", (w) => w.signal("a", { timeout: duration })],
      ["the timeout of step", (w) => w.step("a", async () => 1, { timeout: duration })],
    ];
    for (const [field, call] of calls) {
      const workflow = defineWorkflow("odd", { version: 1 }, async (w) => {
        await call(w).catch((error: unknown) => {
          throw new TerminalError((error as Error).message);
        });
      });
      const run = await testWorkflow(workflow, undefined).settle();
      expect(run).toMatchObject({ status: "failed", error: { message: expect.any(String) } });
      expect(run.error?.message).toContain(`${field} "a" "${duration}" is`);
    }
  },
);

test("a sleep until a time ends at that time, and at once if it is past", async () => {
  const launch = defineWorkflow("launch", { version: 1 }, async (w, input: { at: number }) => {
    await w.sleepUntil("past", new Date(0));
    await w.sleepUntil("launch", input.at);
    return await w.now();
  });
  const t = testWorkflow(launch, { at: 90_000 }, { startMs: 30_000, replayEveryStep: true });
  expect(await t.settle()).toMatchObject({ status: "waiting", waitingUntilMs: 90_000 });
  expect(await t.advance("59s")).toMatchObject({ status: "waiting" });
  expect(await t.advance("1s")).toMatchObject({ status: "done", result: 90_000 });
  expect((await t.steps()).get("launch")).toMatchObject({ kind: "sleep", untilMs: 90_000 });
  await t.replay();
});

test("a sleep until no time blocks the run", async () => {
  const launch = defineWorkflow("launch", { version: 1 }, (w) => w.sleepUntil("launch", NaN));
  const { status, blockedReason } = await testWorkflow(launch, undefined).settle();
  expect([status, blockedReason]).toEqual(["blocked", expect.stringContaining("Date or epoch ms")]);
});

test("retry.delay is the time between any two attempts", async () => {
  const times: number[] = [];
  const poll = defineWorkflow("poll", { version: 1 }, async (w) => {
    await w.step(
      "ask",
      async () => {
        times.push(times.length);
        if (times.length < 4) throw new Error("not yet");
      },
      { retry: { attempts: Infinity, delay: "30s" } },
    );
    return await w.now();
  });
  const t = testWorkflow(poll, undefined);
  for (const untilMs of [30_000, 60_000, 90_000]) {
    expect((await t.settle()).waitingUntilMs).toBe(untilMs);
    await t.advance("30s");
  }
  expect(await t.settle()).toMatchObject({ status: "done", result: 90_000 });
});

test.each([
  [{ delay: "0s" }, "at least 1ms"],
  [{ delay: "soon" as Duration }, "not a duration"],
  [{ delay: "1s", policy: failureBackoff }, "keep one of them"],
] as const)("rejects the retry %j of a step", async (retry, message) => {
  const asks = defineWorkflow("asks", { version: 1 }, (w) => w.step("ask", () => 1, { retry }));
  const { status, blockedReason } = await testWorkflow(asks, undefined).settle();
  expect([status, blockedReason]).toEqual(["blocked", expect.stringContaining(message)]);
});

describe("the failed tries of a step", () => {
  const flaky = (failures: number) =>
    defineWorkflow("flaky", { version: 1 }, async (w) => {
      await w.step(
        "ask",
        ({ attempt }) => {
          if (attempt <= failures) throw new TypeError(`no answer ${attempt} ${"x".repeat(300)}`);
        },
        { retry: { attempts: 9, delay: "1m" } },
      );
    });

  test.each([
    ["without a codec", {}],
    ["with a codec", { codec: scrambleCodec() }],
  ])("are kept with their errors, the last five of them, %s", async (_, options) => {
    const t = testWorkflow(flaky(7), undefined, options);
    await t.settle();
    const first = { attempt: 1, atMs: 0, code: "TypeError" };
    const progress = (await t.history()).progress[0];
    expect(progress).toMatchObject({ name: "ask", attempts: 1, maxAttempts: 9, tries: [first] });
    expect(progress?.tries?.[0]?.message).toHaveLength(200);
    for (let minute = 1; minute <= 7; minute += 1) await t.advance("1m");
    const record = (await t.steps()).get("ask");
    expect(record).toMatchObject({ attempts: 8 });
    expect(record?.tries?.map(({ attempt }) => attempt)).toEqual([3, 4, 5, 6, 7]);
    expect(record?.tries?.at(-1)?.message).toMatch(/^no answer 7 x/);
  });

  test("a step that succeeds at once has none", async () => {
    const t = testWorkflow(flaky(0), undefined);
    await t.settle();
    expect((await t.steps()).get("ask")).not.toHaveProperty("tries");
  });

  test("a step that fails keeps those before its error", async () => {
    const t = testWorkflow(flaky(9), undefined);
    await t.settle();
    for (let minute = 1; minute <= 9; minute += 1) await t.advance("1m");
    const record = (await t.steps()).get("ask");
    expect(record?.error?.message).toMatch(/^no answer 9/);
    expect(record?.tries?.map(({ attempt }) => attempt)).toEqual([4, 5, 6, 7, 8]);
  });
});

test("a wait has the position of its call in the code", async () => {
  const confirm = async (w: WorkflowContext) => await w.signal("approve");
  const asks = defineWorkflow("asks", { version: 1 }, async (w) => {
    await w.step("ask", () => 1);
    await Promise.all([confirm(w), w.sleep("rest", "1h")]);
  });
  const { waits = [] } = await testWorkflow(asks, undefined).settle();
  const file = String.raw`\(?/\S+test-workflow\.test\.ts:\d+:\d+\)?`;
  expect(waits.map(({ step, position }) => [step, position])).toEqual([
    ["approve", expect.stringMatching(new RegExp(`^at confirm ${file}$`))],
    ["rest", expect.stringMatching(new RegExp(`^at (?:\\S+ )*${file}$`))],
  ]);
});
