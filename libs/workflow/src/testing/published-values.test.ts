import { expect, test } from "vitest";
import { defineWorkflow } from "../define/define-workflow.ts";
import { testWorkflow } from "./test-workflow.ts";

const copying = defineWorkflow("copying", { version: 1 }, async (w, input: { files: string[] }) => {
  for (const [index, file] of input.files.entries()) {
    w.set("progress", { done: index, of: input.files.length });
    await w.step(`copy ${file}`, () => file);
  }
  w.set("phase", "verify");
  await w.signal("verified");
  w.set("phase", undefined);
  w.set("progress", { done: input.files.length, of: input.files.length });
  return null;
});

test.each([{ replayEveryStep: false }, { replayEveryStep: true }])(
  "shows the last value of each name while the run waits and after its end, with %o",
  async (options) => {
    const t = testWorkflow(copying, { files: ["a", "b"] }, options);
    const waiting = { progress: { done: 1, of: 2 }, phase: "verify" };
    expect(await t.settle()).toMatchObject({ status: "waiting", published: waiting });
    // An execution that finds nothing new leaves the values as they are.
    await t.signal("other");
    expect((await t.run()).published).toEqual(waiting);
    const { status, published } = await t.signal("verified");
    expect([status, published]).toEqual(["done", { progress: { done: 2, of: 2 } }]);
    await t.replay();
  },
);

test("a published object may change afterwards", async () => {
  const changing = defineWorkflow("changing", { version: 1 }, async (w) => {
    const counts = { a: 1 };
    w.set("counts", counts);
    counts.a = 2;
    await w.signal("go");
    return null;
  });
  const { published } = await testWorkflow(changing, undefined).settle();
  expect(published).toEqual({ counts: { a: 1 } });
});

test("a run without published values has none", async () => {
  const plain = defineWorkflow("plain", { version: 1 }, async () => null);
  expect(await testWorkflow(plain, undefined).settle()).not.toHaveProperty("published");
});

test.each([
  { title: "an empty name", name: "", value: 1, message: 'name "" of a published value must' },
  { title: "a Date", name: "at", value: new Date(0), message: 'the published value "at" cannot' },
  { title: "17 KiB", name: "all", value: "x".repeat(17_000), message: "the limit is 16384" },
])("rejects $title and names it", async ({ name, value, message }) => {
  const wrong = defineWorkflow("wrong", { version: 1 }, async (w) => {
    let text = "";
    try {
      w.set(name, value as string);
    } catch (error) {
      text = (error as Error).message;
    }
    await w.step("end", () => null);
    return text;
  });
  const { result, published } = await testWorkflow(wrong, undefined).settle();
  expect(result).toContain(message);
  expect(published).toBeUndefined();
});

test("rejects a call in the body of a step", async () => {
  const inside = defineWorkflow("inside", { version: 1 }, async (w) => {
    await w.step("copy", () => w.set("progress", 1), { retry: { attempts: 1 } });
    return null;
  });
  const t = testWorkflow(inside, undefined);
  await t.settle();
  expect((await t.steps()).get("copy")?.error).toMatchObject({
    code: "invalid_workflow",
    message: expect.stringContaining('"progress" is called in the body of step "copy"') as string,
  });
});

test.each([{ replayEveryStep: false }, { replayEveryStep: true }])(
  "a function sets and removes labels, with %o",
  async (options) => {
    const labelling = defineWorkflow("labelling", { version: 1 }, async (w) => {
      w.label("phase", "copy");
      await w.step("copy", () => null);
      w.label("phase", "wait");
      w.label("size", "large");
      await w.signal("go");
      w.label("phase", undefined);
      return null;
    });
    const t = testWorkflow(labelling, undefined, options);
    expect(await t.settle()).toMatchObject({ labels: { phase: "wait", size: "large" } });
    expect((await t.signal("go")).labels).toEqual({ size: "large" });
    await t.replay();
  },
);

test.each([
  { name: "a b", value: "x", message: 'label name "a b" must have' },
  { name: "a", value: "x y", message: 'the value of label "a" must have' },
])("rejects the label $name with value $value", async ({ name, value, message }) => {
  const wrong = defineWorkflow("wrong", { version: 1 }, async (w) => {
    try {
      w.label(name, value);
    } catch (error) {
      return (error as Error).message;
    }
    return "accepted";
  });
  expect((await testWorkflow(wrong, undefined).settle()).result).toContain(message);
});
