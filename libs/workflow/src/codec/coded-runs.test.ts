import { formatEncoded, type PayloadCodec } from "@konverge/core";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { aesGcmCodec } from "./aes-gcm-codec.ts";
import { encodeValue } from "./value-codec.ts";
import { defineWorkflow } from "../define/define-workflow.ts";
import { testWorkflow } from "../testing/test-workflow.ts";
import { scrambleCodec } from "../../../../test/support/scramble-codec.ts";

const pay = defineWorkflow("pay", { version: 1 }, async (w, input: { card: string }) => {
  w.set("card", input.card);
  const charged = await w.step("charge", () => ({ card: input.card }));
  const answer = await w.signal("approve");
  return { charged, answer };
});

describe("a signal that only looks encoded", () => {
  const aes = aesGcmCodec({ keys: { a: Buffer.alloc(32) }, current: "a" });
  const text = (codec: string, bytes: Uint8Array) =>
    formatEncoded({ codec, packing: "json", data: Buffer.from(bytes).toString("base64") });

  test.each([
    ["without a codec, and damaged", undefined, "konverge.dev/codec:1:mine:json:!"],
    ["and is damaged", scrambleCodec(), "konverge.dev/codec:1:scramble:json:!"],
    ["and is too short", aes, text("aes-gcm", Buffer.alloc(4))],
    [
      "and has another key",
      aes,
      text("aes-gcm", Buffer.concat([Buffer.from("\u0001a"), Buffer.alloc(40)])),
    ],
  ])("%s is dropped, and the next one is consumed", async (_, codec, forged) => {
    for (const step of ["signal", "update"]) {
      const handling = defineWorkflow("handling", { version: 1 }, async (w) =>
        step === "signal"
          ? await w.signal("approve")
          : await w.handle("approve", z.string(), (payload) => payload),
      );
      const t = testWorkflow(handling, undefined, codec === undefined ? {} : { codec });
      const send = async (payload: string) =>
        await (step === "signal" ? t.signal("approve", payload) : t.update("approve", payload));
      await send(forged).catch(() => undefined);
      expect(await t.run()).toMatchObject({ status: "waiting" });
      await send("yes");
      expect(await t.run()).toMatchObject({ status: "done", result: "yes" });
    }
  });
});

describe("a codec that fails", () => {
  /** A codec that fails while `broken` has a reason. */
  const breakable = () => {
    const inner = scrambleCodec();
    const state: { encode?: string; decode?: string; calls: number } = { calls: 0 };
    const codec: PayloadCodec = {
      ...inner,
      encode(bytes, context) {
        state.calls += 1;
        if (state.encode !== undefined) throw new Error(state.encode);
        return inner.encode(bytes, context);
      },
      async decode(bytes, context) {
        if (state.decode !== undefined) throw new Error(state.decode);
        return await inner.decode(bytes, context);
      },
    };
    return { codec, state };
  };

  test("blocks the run with its reason, and the run continues when it works", async () => {
    const { codec, state } = breakable();
    const t = testWorkflow(pay, { card: "4711" }, { codec });
    await t.settle();
    state.decode = "no key service";
    expect(await t.signal("approve", "yes")).toMatchObject({
      status: "blocked",
      blockedReason: 'codec_failed: decode of codec "scramble" failed: no key service',
    });
    delete state.decode;
    expect(await t.advance("2m")).toMatchObject({
      status: "done",
      result: { charged: { card: "4711" }, answer: "yes" },
    });
    expect(t.bodies).toEqual(["charge"]);
  });

  test("blocks the run with the signal and the key that it needs, and the run continues with the key", async () => {
    const withKeys = (...ids: readonly string[]) =>
      aesGcmCodec({
        keys: Object.fromEntries(ids.map((id) => [id, Buffer.alloc(32, id)])),
        current: ids[0] ?? "",
      });
    let worker = withKeys("a");
    const codec: PayloadCodec = {
      name: "aes-gcm",
      encode: (bytes, context) => worker.encode(bytes, context),
      decode: (bytes, context) => worker.decode(bytes, context),
    };
    const t = testWorkflow(pay, { card: "4711" }, { codec });
    await t.settle();
    const context = { workflow: "pay", kind: "payload" } as const;
    const payload = await encodeValue(withKeys("b"), "yes", context);
    expect(await t.signal("approve", payload)).toMatchObject({
      status: "blocked",
      blockedReason: expect.stringMatching(
        /^codec_failed: signal "approve" with the ID \S+: .*key "b" is missing from keys; add it/,
      ) as string,
    });
    worker = withKeys("a", "b");
    expect(await t.advance("2m")).toMatchObject({ status: "done", result: { answer: "yes" } });
  });

  test("blocks the run if a record cannot be encoded", async () => {
    const { codec, state } = breakable();
    const t = testWorkflow(pay, { card: "4711" }, { codec });
    t.holdStep("charge");
    await t.settle();
    state.encode = "no key service";
    const run = await t.releaseStep("charge");
    expect(run).toMatchObject({
      status: "blocked",
      blockedReason: 'codec_failed: encode of codec "scramble" failed: no key service',
    });
    delete state.encode;
    expect(await t.advance("2m")).toMatchObject({ status: "waiting", published: { card: "4711" } });
  });

  test("is tried again, so that a body does not run twice", async () => {
    const { codec, state } = breakable();
    let left = 0;
    const flaky: PayloadCodec = {
      ...codec,
      encode(bytes, context) {
        if (context.kind === "record" && left-- > 0) throw new Error("once");
        return codec.encode(bytes, context);
      },
    };
    left = 2;
    const t = testWorkflow(pay, { card: "4711" }, { codec: flaky });
    expect((await t.settle()).status).toBe("waiting");
    expect(t.bodies).toEqual(["charge"]);
    expect(state.calls).toBeGreaterThan(0);
  });

  test.each([
    {
      what: "text",
      decoded: "text" as unknown as Uint8Array,
      why: "it returned string, not a Uint8Array",
    },
    {
      what: "garbage",
      decoded: Buffer.from('"sec'),
      why: "it did not return the bytes that were encoded",
    },
  ])("blocks the run if it returns $what", async ({ decoded, why }) => {
    const inner = scrambleCodec();
    let breaks = false;
    const codec: PayloadCodec = {
      ...inner,
      decode: (bytes, context) => (breaks ? decoded : inner.decode(bytes, context)),
    };
    const t = testWorkflow(pay, { card: "4711" }, { codec });
    await t.settle();
    breaks = true;
    const run = await t.signal("approve");
    breaks = false;
    expect(run.blockedReason).toBe(`codec_failed: decode of codec "scramble" failed: ${why}`);
  });
});

test("a slow codec changes nothing", async () => {
  const inner = scrambleCodec();
  const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
  const slow: PayloadCodec = {
    async encode(bytes, context) {
      await turn();
      return await inner.encode(bytes, context);
    },
    async decode(bytes, context) {
      await turn();
      return await inner.decode(bytes, context);
    },
  };
  const t = testWorkflow(pay, { card: "4711" }, { codec: slow });
  expect(await t.signal("approve", 1)).toMatchObject({
    status: "done",
    result: { charged: { card: "4711" }, answer: 1 },
  });
});

test("a step may not return a text that looks encoded, without a codec", async () => {
  const odd = defineWorkflow("odd", { version: 1 }, async (w) => {
    return await w.step("a", () => "konverge.dev/codec:1:x:json:abc", { retry: { attempts: 1 } });
  });
  const run = await testWorkflow(odd, undefined).settle();
  expect(run).toMatchObject({ status: "failed" });
  expect(run.error?.message).toContain("is reserved for encoded values");
});
