import { setImmediate as nextTurn } from "node:timers/promises";
import { TerminalError, type PayloadCodec } from "@konverge/core";
import { expect, test } from "vitest";
import { defineWorkflow, type StepContext } from "../define/define-workflow.ts";
import { scrambleCodec } from "../../../../test/support/scramble-codec.ts";
import { testWorkflow } from "./test-workflow.ts";

const ONE_PER_MINUTE = { limits: { stripe: { rate: 1, per: "1m", burst: 1 } } } as const;

const charging = defineWorkflow("charging", { version: 1 }, async (w) => {
  await w.step("first", () => 1, { limit: "stripe" });
  const { branch } = await w.race({
    charge: () => w.step("charge", () => 2, { limit: "stripe" }),
    abort: () => w.signal("abort"),
  });
  await w.step("refund", () => 3, { limit: "stripe" });
  return branch;
});

test("a step in a losing branch that waits for a permit leaves the queue of the limit", async () => {
  const t = testWorkflow(charging, undefined, ONE_PER_MINUTE);
  expect(await t.settle()).toMatchObject({ waits: [{ step: "abort" }, { step: "charge" }] });
  expect(await t.signal("abort")).toMatchObject({ waits: [{ step: "refund", limit: "stripe" }] });
  expect(await t.advance("1m")).toMatchObject({ status: "done", result: "abort" });
  await t.replay();
});

test("a step in a losing branch leaves the queue of the limit, also during a body", async () => {
  const busy = defineWorkflow("busy", { version: 1 }, async (w) => {
    const first = await w.race({
      charge: async () => {
        await w.step("first", () => 1, { limit: "stripe" });
        await w.step("charge", () => 2, { limit: "stripe" });
      },
      copy: () => w.step("copy", () => 3),
    });
    await w.step("refund", () => 3, { limit: "stripe" });
    return first.branch;
  });
  const t = testWorkflow(busy, undefined, ONE_PER_MINUTE);
  t.holdStep("copy");
  expect(await t.settle()).toMatchObject({ status: "running" });
  expect(t.bodies.toSorted()).toEqual(["copy", "first"]);
  expect(await t.releaseStep("copy")).toMatchObject({ waits: [{ step: "refund" }] });
  expect(await t.advance("1m")).toMatchObject({ status: "done", result: "copy" });
  await t.replay();
});

test.each(["continues in a round", "fails"])(
  "a run that %s leaves the lines of its waiting steps",
  async (end) => {
    const undo = () => undefined;
    const charges = defineWorkflow("charges", { version: 1 }, async (w, round: number) => {
      if (round === 2) return await w.step("next", () => 2, { limit: "stripe" });
      await w.step("first", () => 1, { limit: "stripe", undo });
      return await Promise.all([
        w.step("second", () => 2, { limit: "stripe" }),
        w.signal("end").then(async () => {
          if (end === "fails") throw new TerminalError("no");
          return await w.continueWith(2);
        }),
      ]);
    });
    const t = testWorkflow(charges, 1, ONE_PER_MINUTE);
    await t.settle();
    expect(await t.signal("end")).toMatchObject({ waitingUntilMs: 60_000 });
    const ended = end === "fails" ? { status: "failed" } : { status: "done", round: 2 };
    expect(await t.advance("1m")).toMatchObject(ended);
  },
);

/** A codec that takes long for the first heartbeat. */
function slowCodec() {
  let isFirst = true;
  const { promise: encoded, resolve } = Promise.withResolvers<void>();
  const codec: PayloadCodec = {
    async encode(bytes) {
      if (isFirst && new TextDecoder().decode(bytes).includes("row")) {
        isFirst = false;
        for (let turn = 0; turn < 100; turn += 1) await nextTurn();
        setImmediate(() => resolve());
      }
      return bytes;
    },
    decode: (bytes) => bytes,
  };
  return { codec, encoded };
}

test.each([
  { end: "record", fails: false },
  { end: "failed attempt", fails: true },
])("a heartbeat that the codec encodes slowly precedes the $end of its step", async ({ fails }) => {
  const copying = defineWorkflow("copying", { version: 1 }, async (w) => {
    const copy = (ctx: StepContext) => {
      ctx.heartbeat({ row: 1 });
      if (fails) throw new Error("no");
    };
    await w.step("copy", copy, { heartbeatTimeout: "30s", retry: { delay: "1h" } });
    await w.signal("end");
  });
  const { codec, encoded } = slowCodec();
  const t = testWorkflow(copying, undefined, { codec });
  expect(await t.settle()).toMatchObject({ status: "waiting" });
  await encoded;
  const { progress } = await t.history();
  expect(progress.filter(({ name }) => name === "copy")).toEqual(
    fails ? [expect.objectContaining({ attempts: 1, untilMs: 3_600_000 })] : [],
  );
  expect(progress.some(({ running }) => running !== undefined)).toBe(false);
});

function beat(ctx: StepContext) {
  const last = ctx.lastHeartbeat;
  ctx.heartbeat(`beat ${ctx.attempt}`);
  return { attempt: ctx.attempt, last };
}

test("a worker that is lost while its run is pausing counts once the run is resumed", async () => {
  const copying = defineWorkflow(
    "copying",
    { version: 1 },
    async (w) => await w.step("copy", beat, { heartbeatTimeout: "30s" }),
  );
  const t = testWorkflow(copying, undefined, { codec: scrambleCodec() });
  t.holdStep("copy");
  await t.settle();
  expect(await t.pause()).toMatchObject({ status: "pausing" });
  t.crashAtHeartbeat("copy");
  expect(await t.releaseStep("copy")).toMatchObject({ status: "paused" });
  expect(t.bodies).toEqual(["copy"]);
  const result = { attempt: 2, last: "beat 1" };
  expect(await t.resume()).toMatchObject({ status: "done", result });
});

test("a run resumes after a race of a later round, whose lost step is no failure", async () => {
  const copying = defineWorkflow("copying", { version: 1 }, async (w, round: number) => {
    const { branch } = await w.race({
      copy: () => w.step("copy", beat, { heartbeatTimeout: "30s" }),
      end: () => w.signal("end"),
    });
    if (round === 1) return await w.continueWith(2);
    await w.step("report", () => undefined);
    await w.step("finish", () => undefined);
    return branch;
  });
  const t = testWorkflow(copying, 1, { codec: scrambleCodec() });
  t.failStep("finish", new TerminalError("no"));
  for (const round of [1, 2]) {
    t.holdStep("copy");
    expect((await t.settle()).round ?? 1).toBe(round);
    await t.signal("end");
  }
  expect(await t.run()).toMatchObject({ status: "failed", round: 2 });
  const retried = await t.retry({ fromFailed: true });
  expect(retried).toMatchObject({ status: "done", round: 2, result: "end" });
  expect(t.bodies.filter((body) => body === "report")).toHaveLength(1);
  await t.replay();
});
