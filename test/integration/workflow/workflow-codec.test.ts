import { randomBytes } from "node:crypto";
import { isEncoded, parseEncoded, type CodecContext, type PayloadCodec } from "@konverge/core";
import { expect, test } from "vitest";
import { z } from "zod";
import {
  aesGcmCodec,
  defineSchedule,
  defineWorkflow,
  encodeValue,
  TerminalError,
  type Workflows,
} from "@konverge/workflow";
import { runNames } from "../../../libs/workflow/src/store/run-names.ts";
import { watchCommands } from "../../contract/watch-commands.ts";
import { scrambleCodec } from "../../support/scramble-codec.ts";
import { until } from "../../support/until.ts";
import { ended, inStatus, useWorkflows } from "./workflow-harness.ts";

const harness = useWorkflows();
const CANARY = "canary-6Fq";
/** Not secret: must be found, or the search proves nothing. */
const MARKER = "marker-that-may-be-seen";
const ONCE = { retry: { attempts: 1 } };
const secret = (place: string) => `${CANARY} in ${place}`;

const child = defineWorkflow("codec-child", { version: 1 }, async (w, input: { card: string }) => {
  return await w.step(MARKER, () => ({ card: `${input.card} of the child` }));
});

let failures = 0;
const pay = defineWorkflow(
  "codec-pay",
  {
    version: 1,
    input: z.object({ card: z.string(), by: z.string().default(secret("parsed input")) }),
  },
  async (w, input: { card: string; by: string }) => {
    w.set("card", secret("published"));
    w.log.info({ card: secret("fields") }, secret("log"));
    const charged = await w.step(
      "charge",
      ({ log, heartbeat }) => {
        heartbeat({ at: secret("heartbeat") });
        log.info({}, secret("log of a body"));
        if (failures++ === 0) throw new Error(secret("progress"));
        return { card: input.card, by: input.by };
      },
      { retry: { attempts: 2, delay: "1s" } },
    );
    const failed = await w
      .step(
        "fail",
        () => {
          throw new Error(secret("error"));
        },
        ONCE,
      )
      .catch((error: unknown) => (error as Error).message);
    const paid = await w.child("child", child, { card: secret("child input") });
    const approved = await w.signal("approve", { schema: z.object({ by: z.string() }) });
    const answer = await w.handle(
      "amount",
      z.object({ euros: z.number(), note: z.string() }),
      ({ euros, note }) => {
        if (euros > 100) throw new TerminalError(secret(`refusal of ${euros}`));
        return { note, text: secret("answer") };
      },
    );
    return { charged, failed, paid, approved, answer };
  },
);

const faulty = defineWorkflow("codec-faulty", { version: 1 }, async (w) => {
  await w.step("a", () => null);
  throw new TypeError(secret("type error"));
});

const failing = defineWorkflow("codec-failing", { version: 1 }, async (w) => {
  await w.step("a", () => null, { undo: () => undefined });
  throw new TerminalError(secret("terminal error"));
});

async function playPay(runs: Workflows) {
  const ref = { workflow: pay.name, id: "p" };
  await runs.start(pay, { card: secret("input") } as never, { id: "p" });
  await inStatus(runs, pay, "p", "waiting");
  await runs.signal(ref, "approve", { payload: { by: 1, [secret("wrong payload")]: 1 } });
  await until("the wrong signal is refused", async () => {
    return (await runs.refusedSignals(ref)).count === 1 ? true : undefined;
  });
  await runs.signal(ref, "approve", { payload: { by: secret("payload") } });
  const refused = await runs.update(ref, "amount", {
    payload: { euros: 500, note: secret("refused update") },
  });
  const answerTo = (id: string) => until("the answer", () => runs.answerTo(ref, id));
  expect(await answerTo(refused.id)).toMatchObject({
    kind: "refused",
    refusal: { message: secret("refusal of 500") },
  });
  const sent = await runs.update(ref, "amount", { payload: { euros: 5, note: secret("update") } });
  expect(await answerTo(sent.id)).toMatchObject({
    kind: "accepted",
    value: { note: secret("update"), text: secret("answer") },
  });
  const run = await ended(runs, pay, "p");
  expect(run).toMatchObject({
    status: "done",
    input: { card: secret("input") },
    published: { card: secret("published") },
    result: {
      charged: { card: secret("input"), by: secret("parsed input") },
      failed: `step "fail" failed: ${secret("error")}`,
      paid: { card: `${secret("child input")} of the child` },
      approved: { by: secret("payload") },
      answer: { note: secret("update"), text: secret("answer") },
    },
  });
  return ref;
}

test("no value of a user reaches Redis as it is, and only a process with the codec reads it", async () => {
  failures = 0;
  using watched = await watchCommands(harness.url);
  const runs = harness.openRuns({ codec: scrambleCodec() });
  runs.work({ workflows: [pay, child, faulty, failing] });
  const nightly = defineSchedule("nightly", {
    every: "1h",
    workflow: child,
    input: { card: secret("schedule") },
  });
  runs.schedule([nightly]);
  const ref = await playPay(runs);
  await runs.start(faulty, undefined, { id: "f" });
  const blocked = await inStatus(runs, faulty, "f", "blocked");
  expect(blocked.blockedError?.message).toBe(secret("type error"));
  expect(blocked.blockedReason).toContain(secret("type error"));
  const origin = { uid: "u", object: "pools/default/pools.x/_/web" };
  const forObject = { id: "o", key: "web", origin };
  await runs.start(failing, undefined, forObject);
  const failed = await ended(runs, failing, "o");
  expect(failed.error).toMatchObject({ code: "terminal", message: secret("terminal error") });
  expect(failed.error?.frames?.join("\n")).toContain("workflow-codec.test.ts");
  // The kept end of the key, after the run itself has expired.
  await harness.redis.unlink(runNames(harness.prefix, "default", failing.name).run("o"));
  expect((await runs.start(failing, undefined, forObject)).end?.error?.message).toBe(
    secret("terminal error"),
  );
  await until("the schedule is announced", async () => {
    const [known] = await runs.schedules.list();
    return known?.input === undefined ? undefined : known;
  });
  const triggered = await runs.schedules.trigger("nightly", { id: "t" });
  expect((await ended(runs, child, triggered.id)).result).toEqual({
    card: `${secret("schedule")} of the child`,
  });
  const lines = await until("the log", async () => {
    const logged = await runs.logs(ref);
    return logged.length >= 3 ? logged : undefined;
  });
  const heartbeats = watched.commands.filter(({ args }) => args.join(" ").includes("heartbeat"));
  expect(heartbeats.length, "notes with a heartbeat").toBeGreaterThan(0);
  expect(lines[0]).toMatchObject({ message: secret("log"), fields: { card: secret("fields") } });

  const sent = watched.commands.map(({ args }) => args.join(" ")).join("\n");
  expect(sent).toContain(MARKER);
  expect(sent).not.toContain(CANARY);
  const outside = harness.openRuns();
  const seen = JSON.stringify([
    await outside.get(ref),
    await outside.steps(ref),
    await outside.history(ref),
    await outside.logs(ref),
    await outside.refusedSignals(ref),
    await outside.get({ workflow: faulty.name, id: "f" }),
    await outside.list([pay.name, failing.name, faulty.name, child.name]),
    await outside.schedules.list(),
  ]);
  expect(seen).toContain(child.name);
  expect(seen).toContain("konverge.dev/codec:1:scramble:json:");
  expect(seen).not.toContain(CANARY);
});

test("a run is blocked in a worker without its codec, and continues with it", async () => {
  const waits = defineWorkflow("codec-waits", { version: 1 }, async (w, input: string) => {
    const value = await w.step("a", () => input.length);
    await w.signal("go");
    return value;
  });
  const ref = { workflow: waits.name, id: "r" };
  const [coded, plain] = [harness.openRuns({ codec: scrambleCodec() }), harness.openRuns()];
  let worker = coded.work({ workflows: [waits] });
  await coded.start(waits, "four", { id: "r" });
  await inStatus(coded, waits, "r", "waiting");
  await worker.stop();
  worker = plain.work({ workflows: [waits] });
  await plain.signal(ref, "go");
  const blocked = await inStatus(plain, waits, "r", "blocked");
  expect(blocked.blockedReason).toBe(
    'codec_missing: a value was encoded by codec "scramble", and this process has no codec; configure codec "scramble", then the run resumes',
  );
  await worker.stop();
  const other = harness.openRuns({ codec: scrambleCodec("other") });
  worker = other.work({ workflows: [waits] });
  await until("the other codec is reported", async () => {
    const { blockedReason = "" } = (await other.get(ref)) ?? {};
    return blockedReason.includes('this process has codec "other"') ? true : undefined;
  });
  await worker.stop();
  coded.work({ workflows: [waits] });
  expect(await ended(coded, waits, "r")).toMatchObject({ status: "done", result: 4 });
});

test("values from before the codec stay readable, and keys rotate in the middle of a run", async () => {
  const keys = { one: randomBytes(32), two: randomBytes(32) };
  const steps = defineWorkflow("codec-steps", { version: 1 }, async (w, input: string) => {
    const values = [input];
    for (const name of ["a", "b", "c"]) {
      values.push(await w.step(name, () => `${name} of ${input}`));
      await w.signal("next");
    }
    return values;
  });
  const ref = { workflow: steps.name, id: "r" };
  const codecs: (PayloadCodec | undefined)[] = [
    undefined,
    aesGcmCodec({ keys, current: "one" }),
    aesGcmCodec({ keys, current: "two" }),
  ];
  for (const [at, codec] of codecs.entries()) {
    const runs = harness.openRuns(codec === undefined ? {} : { codec });
    const worker = runs.work({ workflows: [steps] });
    if (at === 0) await runs.start(steps, "input", { id: "r" });
    const name = ["a", "b", "c"][at] ?? "";
    await until(`step ${name} is recorded`, async () => {
      const known = await runs.steps(ref);
      return known.some((record) => record.name === name) ? true : undefined;
    });
    await inStatus(runs, steps, "r", "waiting");
    if (at < 2) await worker.stop();
    await runs.signal(ref, "next");
  }
  const last = harness.openRuns({ codec: codecs[2]! });
  const run = await ended(last, steps, "r");
  expect(run.result).toEqual(["input", "a of input", "b of input", "c of input"]);
  const stored = new Map(
    (await harness.openRuns().steps(ref)).map((record) => [record.name, record.value]),
  );
  expect(stored.get("a")).toBe("a of input");
  expect([isEncoded(stored.get("b")), isEncoded(stored.get("c"))]).toEqual([true, true]);
});

test("a repeated start compares the inputs, not their encoded forms", async () => {
  const runs = harness.openRuns({ codec: scrambleCodec() });
  const start = (card: string) => runs.start(child, { card }, { id: "same" });
  expect((await start("1")).created).toBe(true);
  expect((await start("1")).created).toBe(false);
  await expect(start("2")).rejects.toMatchObject({ code: "input_mismatch" });
});

test("a repeated start compares encoded inputs without the codec, by keyed fingerprints", async () => {
  const keys = { old: Buffer.alloc(32, 1), new: Buffer.alloc(32, 2) };
  const codec = aesGcmCodec({ keys, current: "new" });
  const runs = harness.openRuns();
  const byName = { name: child.name, version: child.version };
  const begin = async (input: unknown, by: PayloadCodec, id = "same") => {
    const encoded = await encodeValue(by, input, { workflow: child.name, run: id, kind: "input" });
    return await runs.start<unknown>(byName, encoded, { id });
  };
  expect((await begin({ card: "1", of: "ann" }, codec)).created).toBe(true);
  expect((await begin({ of: "ann", card: "1" }, codec)).created).toBe(false);
  await expect(begin({ card: "2", of: "ann" }, codec)).rejects.toMatchObject({
    code: "input_mismatch",
  });
  // The keys differ, or the codec makes no fingerprints: the inputs cannot be compared here.
  const rotated = aesGcmCodec({ keys, current: "old" });
  expect((await begin({ card: "2", of: "ann" }, rotated)).created).toBe(false);
  const bare: PayloadCodec = {
    name: "aes-gcm",
    encode: (bytes, context) => codec.encode(bytes, context),
    decode: (bytes, context) => codec.decode(bytes, context),
  };
  expect((await begin({ card: "2", of: "ann" }, bare)).created).toBe(false);
  // A process with the codec decodes both.
  const able = harness.openRuns({ codec });
  const other = await encodeValue(bare, { card: "2" }, { workflow: child.name, kind: "input" });
  await expect(able.start<unknown>(byName, other, { id: "same" })).rejects.toMatchObject({
    code: "input_mismatch",
  });
  await begin({ card: "1", of: "ann" }, codec, "other");
  const inputs = await Promise.all(
    ["same", "other"].map(async (id) => (await runs.get({ workflow: child.name, id }))?.input),
  );
  // Equal inputs of two runs do not show that they are equal.
  const [one, two] = inputs.map((input) => parseEncoded(String(input))?.fingerprint);
  expect(one).toMatch(/^bmV3\.[-_A-Za-z0-9]{43}$/);
  expect(two).not.toBe(one);
});

test("a retry by a process without the codec starts with the same input", async () => {
  let broken = true;
  const retried = defineWorkflow("codec-retried", { version: 1 }, async (w, input: string) => {
    if (broken) throw new TerminalError("broken");
    return await w.step("a", () => input);
  });
  const codec = aesGcmCodec({ keys: { a: randomBytes(32) }, current: "a" });
  const runs = harness.openRuns({ codec });
  runs.work({ workflows: [retried] });
  await runs.start(retried, "card", { id: "r" });
  await ended(runs, retried, "r");
  broken = false;
  const next = await harness.openRuns().retry({ workflow: retried.name, id: "r" });
  expect((await ended(runs, retried, next.id)).result).toBe("card");
});

test("a codec is called with the workflow, the run and the kind of value, and large values compressed", async () => {
  const calls: (CodecContext & { readonly bytes: number })[] = [];
  const inner = scrambleCodec();
  const codec: PayloadCodec = {
    ...inner,
    encode(bytes, context) {
      calls.push({ ...context, bytes: bytes.length });
      return inner.encode(bytes, context);
    },
  };
  const large = "x".repeat(500_000);
  const big = defineWorkflow("codec-big", { version: 1 }, async (w, input: number) => {
    const text = await w.step("big", () => large);
    return text.length + input;
  });
  const runs = harness.openRuns({ codec });
  runs.work({ workflows: [big] });
  await runs.start(big, 1, { id: "r" });
  expect((await ended(runs, big, "r")).result).toBe(500_001);
  const common = { workflow: big.name, run: "r" };
  expect(calls).toMatchObject([
    { ...common, kind: "input", bytes: 1 },
    { ...common, kind: "record" },
    { ...common, kind: "result" },
  ]);
  expect(calls[1]?.bytes).toBeLessThan(10_000);
});

test("a codec costs no further command", async () => {
  const stepped = defineWorkflow("codec-cost", { version: 1 }, async (w, input: number) => {
    let sum = input;
    for (const name of ["a", "b", "c"]) sum += await w.step(name, () => 1);
    return sum;
  });
  const cost = async (codec: PayloadCodec | undefined, id: string) => {
    const runs = harness.openRuns(codec === undefined ? {} : { codec });
    using watched = await watchCommands(harness.url);
    await runs.start(stepped, 1, { id });
    const worker = runs.work({ workflows: [stepped] });
    await ended(runs, stepped, id);
    await worker.stop();
    const name = runNames(harness.prefix, "default", stepped.name).run(id);
    const ofRun = watched.commands.filter(({ args, byScript }) => !byScript && args.includes(name));
    return ofRun.filter(({ args }) => /^evalsha$/i.test(args[0] ?? "")).length;
  };
  const [without, with_] = [await cost(undefined, "p"), await cost(scrambleCodec(), "c")];
  expect(without).toBeGreaterThan(3);
  expect(with_).toBe(without);
});
