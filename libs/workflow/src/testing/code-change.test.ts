import { expect, test } from "vitest";
import { defineWorkflow, type WorkflowContext } from "../define/define-workflow.ts";
import type { TestRun } from "./test-run.ts";
import { testWorkflow } from "./test-workflow.ts";

type Part = (w: WorkflowContext, log: string[]) => Promise<unknown>;

interface Deployed {
  readonly t: TestRun;
  readonly log: string[];
  readonly restore: () => void;
}

/** Starts a run with old code, which waits for `go`, and replaces the code. */
async function deploy(before: Part, after: Part, { strict = false } = {}): Promise<Deployed> {
  let part = before;
  const log: string[] = [];
  const program = defineWorkflow("deployed", { version: 1, strict }, async (w) => {
    const result = await part(w, log);
    await w.signal("go");
    await w.step("finish", async () => void log.push("finish"));
    return result as string;
  });
  const t = testWorkflow(program, undefined as never);
  await t.settle();
  part = after;
  return { t, log, restore: () => void (part = before) };
}

const step =
  (...names: readonly string[]): Part =>
  async (w, log) => {
    for (const name of names) await w.step(name, async () => void log.push(name));
  };

const changes: readonly [what: string, before: Part, after: Part, message: string][] = [
  ["renamed", step("charge"), step("charge card"), 'no longer calls "charge"'],
  ["removed", step("look", "charge"), step("look"), 'no longer calls "charge"'],
  ["reordered", step("a", "b"), step("b", "a"), 'calls "b" earlier than it was recorded'],
  [
    "removed from many",
    step("a", "b", "c", "d", "e", "f", "g"),
    step("a"),
    'no longer calls "b", "c", "d", "e", "f" and 1 more',
  ],
];

test.each(changes)("warns once about a %s step", async (_, before, after, message) => {
  const { t, log } = await deploy(before, after);
  const recorded = [...log];
  const run = await t.signal("go");
  expect(run).toMatchObject({ status: "done", warnings: [{ code: "code_changed" }] });
  expect(run.warnings?.[0]?.message).toContain(message);
  expect(log.slice(0, recorded.length)).toEqual(recorded);
});

test.each(changes)(
  "a strict workflow blocks a run with a %s step before new work",
  async (_, before, after, message) => {
    const { t, log, restore } = await deploy(before, after, { strict: true });
    const recorded = [...log];
    const run = await t.signal("go");
    expect(run.status).toBe("blocked");
    expect(run.blockedReason).toContain(message);
    expect(log).toEqual(recorded);
    restore();
    expect(await t.advance("1m")).toMatchObject({ status: "done" });
    expect(log).toEqual([...recorded, "finish"]);
  },
);

test.each([{ strict: false }, { strict: true }])(
  "another kind blocks a run, with %o",
  async (how) => {
    const signal: Part = async (w) => await w.signal("gate");
    const { t } = await deploy(step("gate"), signal, how);
    const run = await t.signal("go");
    expect(run.status).toBe("blocked");
    expect(run.blockedReason).toContain('the journal has "gate" as a step');
  },
);

test.each([{ strict: false }, { strict: true }])(
  "unchanged code with branches, waits and failures causes no warning, with %o",
  async ({ strict }) => {
    const part: Part = async (w, log) => {
      const fails = async () => {
        await w.step(
          "fails",
          () => {
            throw new Error("as planned");
          },
          { retry: { attempts: 1 } },
        );
      };
      const settled = await Promise.allSettled([
        fails(),
        step("a", "b")(w, log),
        w.sleep("pause", "1m"),
        w.signal("never", { timeout: "2m" }),
      ]);
      return settled.map(({ status }) => status).join();
    };
    const { t } = await deploy(part, part, { strict });
    await t.advance("90s");
    await t.signal("go");
    const run = await t.advance("5m");
    expect(run).toMatchObject({
      status: "done",
      result: "rejected,fulfilled,fulfilled,fulfilled",
    });
    expect(run.warnings).toBeUndefined();
  },
);

test.each([1, 2])(
  "runs of version %i finish with their own steps after a patch",
  async (version) => {
    const log: string[] = [];
    let part: Part = step("charge");
    const define = (accepts: readonly number[]) =>
      defineWorkflow("patched", { version, accepts, strict: true }, async (w) => {
        await part(w, log);
        await w.signal("go");
      });
    const t = testWorkflow(define([]), undefined as never);
    const patched: Part = async (w, all) =>
      w.version >= 2 ? await step("check", "charge card")(w, all) : await step("charge")(w, all);
    if (version === 2) part = patched;
    await t.settle();
    part = patched;
    expect(await t.signal("go")).toMatchObject({ status: "done", version });
    expect(log).toEqual(version === 1 ? ["charge"] : ["check", "charge card"]);
  },
);
