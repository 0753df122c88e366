import { expect, test } from "vitest";
import { defineWorkflow } from "../define/define-workflow.ts";
import type { LogLine } from "../store/run-record.ts";
import { testWorkflow } from "./test-workflow.ts";

const copying = defineWorkflow("copying", { version: 1 }, async (w) => {
  w.log.info({ files: 2 }, "begin");
  await w.step("copy", ({ log, attempt }) => log.warn({ attempt }, "copying"));
  w.log.info({}, "waiting");
  await w.signal("go");
  w.log.child({ by: "ann" }).error({ cause: new TypeError("no disk") }, "end");
  return null;
});
const textOf = ({ level, message, step }: LogLine) => `${level} ${step ?? "-"} ${message}`;

test("keeps each line once, those of bodies with their step", async () => {
  const t = testWorkflow(copying, undefined);
  await t.settle();
  await t.signal("other");
  const begun = ["info - begin", "warn copy copying", "info - waiting"];
  expect((await t.logs()).map(textOf)).toEqual(begun);
  await t.signal("go");
  const lines = await t.logs();
  expect(lines.map(textOf)).toEqual([...begun, "error - end"]);
  expect(lines.map(({ fields }) => fields)).toEqual([
    { files: 2 },
    { attempt: 1 },
    undefined,
    { by: "ann", cause: "TypeError: no disk" },
  ]);
  expect(lines[1]).toMatchObject({ step: "copy", attempt: 1 });
});

test("after crashes, a replay logs the lines of the function that were not stored", async () => {
  const t = testWorkflow(copying, undefined, { replayEveryStep: true });
  await t.settle();
  await t.signal("go");
  const ofFunction = (await t.logs()).filter(({ step }) => step === undefined);
  expect(ofFunction.map(({ message }) => message)).toEqual(["begin", "waiting", "end"]);
});

test("accepts a message without fields from JavaScript", async () => {
  const plain = defineWorkflow("plain", { version: 1 }, async (w) => {
    // @ts-expect-error -- the fields are missing
    w.log.info("begin");
    // @ts-expect-error -- the fields are missing
    await w.step("copy", ({ log }) => log.warn("copying"));
  });
  const t = testWorkflow(plain, undefined);
  await t.settle();
  const lines = await t.logs();
  expect(lines.map(textOf)).toEqual(["info - begin", "warn copy copying"]);
  expect(lines.map(({ fields }) => fields)).toEqual([undefined, undefined]);
});

test("keeps the last 200 lines, of limited size", async () => {
  const talking = defineWorkflow("talking", { version: 1 }, async (w) => {
    for (let line = 0; line < 500; line += 1) w.log.debug({ text: "x".repeat(9_000) }, `${line}`);
    w.log.info({ at: new Date(0) }, "y".repeat(9_000));
    return null;
  });
  const t = testWorkflow(talking, undefined);
  await t.settle();
  const lines = await t.logs();
  expect(lines.length).toBe(200);
  expect(lines.at(-2)).toMatchObject({ message: "499", fields: { omitted: "9011 characters" } });
  const last = lines.at(-1);
  expect(last?.message.length).toBe(500);
  expect(last?.fields).toMatchObject({
    omitted: expect.stringContaining("/at is an instance of Date") as string,
  });
});
