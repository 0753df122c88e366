import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { defineWorkflow, type AnyWorkflow } from "../define/define-workflow.ts";
import type { RunHistory } from "../store/run-history.ts";
import { replay } from "./replay.ts";
import { testWorkflow } from "./test-workflow.ts";

const bodies: string[] = [];
const act = (name: string) => () => {
  bodies.push(name);
  return name;
};
const input = z.object({ name: z.string(), size: z.number().default(1) });
type Context = Parameters<AnyWorkflow["run"]>[0];
const code = (run: (w: Context) => Promise<unknown>, version = 1, accepts: number[] = []) =>
  defineWorkflow("rollout", { version, accepts, input }, async (w) => (await run(w)) as string);

const rollout = code(async (w) => {
  const made = await w.step("create", act("create"), {
    undo: () => void bodies.push("undo create"),
  });
  await w.sleep("soak", "10m");
  const [left, right] = await Promise.all([
    (async () => {
      const inner = await w.step("left", act("left"));
      return `${inner}/${await w.step("left check", act("left check"))}`;
    })(),
    w.step("right", act("right")),
  ]);
  const approved = await w.signal("approve");
  await w.step("finish", act("finish"));
  return `${made} ${left} ${right} ${JSON.stringify(approved)}`;
});

/** A run of the code, after these events. */
async function historyOf(
  workflow: AnyWorkflow,
  events: readonly ("wait" | "approve" | "cancel")[],
): Promise<RunHistory> {
  const t = testWorkflow(workflow as never, { name: "web" });
  await t.settle();
  for (const event of events) {
    if (event === "wait") await t.advance("10m");
    if (event === "approve") await t.signal("approve", { by: "ann" });
    if (event === "cancel") await t.cancel();
  }
  // As it is read from a file.
  return JSON.parse(JSON.stringify(await t.history())) as RunHistory;
}
const PLACES = [[], ["wait"], ["wait", "approve"], ["cancel"], ["wait", "cancel"]] as const;

test.each(PLACES.map((events) => ({ events })))(
  "the same code fits a run after $events, and no body is executed",
  async ({ events }) => {
    const history = await historyOf(rollout, events);
    bodies.length = 0;
    await replay(history, rollout);
    expect(bodies).toEqual([]);
  },
);

test("reads a file of an export", async () => {
  const folder = await mkdtemp(join(tmpdir(), "konverge-replay-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, "run.json");
  await writeFile(file, JSON.stringify(await historyOf(rollout, ["wait"])));
  await replay(file, rollout);
  await writeFile(file, JSON.stringify({ id: "x" }));
  await expect(replay(file, rollout)).rejects.toThrow("konverge run export");
  await writeFile(file, "{");
  await expect(replay(file, rollout)).rejects.toThrow("is not valid JSON");
});

describe("names the first record that does not fit", () => {
  const create = (w: Context) =>
    w.step("create", act("create"), { undo: () => void bodies.push("undo create") });
  const soak = (w: Context) => w.sleep("soak", "10m");
  test.each<{ title: string; changed: AnyWorkflow; reason: string }>([
    {
      title: "another kind",
      changed: code(async (w) => await w.signal("create")),
      reason: 'step "create" became a signal',
    },
    {
      title: "another name",
      changed: code(async (w) => {
        await w.step("create vm", act("create vm"));
        await soak(w);
      }),
      reason: 'step "create" is not called any more; the code calls step "create vm" instead',
    },
    {
      title: "a removed step",
      changed: code(async (w) => {
        await create(w);
        await soak(w);
        await w.signal("approve");
      }),
      reason: 'step "left" is not called any more; the code calls signal "approve" instead',
    },
    {
      title: "another order",
      changed: code(async (w) => {
        await soak(w);
        await create(w);
        await w.step("left", act("left"));
        await w.step("right", act("right"));
        await w.step("left check", act("left check"));
        await w.signal("approve");
      }),
      reason: '"soak" is called in another order',
    },
    {
      title: "a new step before the end",
      changed: code(async (w) => {
        await create(w);
        await w.step("check", act("check"));
        await soak(w);
      }),
      reason: 'sleep "soak" is not called any more; the code calls step "check" instead',
    },
    {
      title: "an earlier end",
      changed: code(async (w) => await create(w)),
      reason: 'sleep "soak" is not called any more',
    },
    {
      title: "another version",
      changed: code(async (w) => await create(w), 2),
      reason: "add 1 to accepts",
    },
    {
      title: "a stricter input",
      changed: defineWorkflow(
        "rollout",
        { version: 1, input: z.object({ name: z.string(), owner: z.string() }) },
        async (w) => void (await create(w as never)),
      ),
      reason: "its input is rejected",
    },
    {
      title: "another workflow",
      changed: defineWorkflow("other", { version: 1 }, async () => undefined),
      reason: 'the run is of "rollout", not of "other"',
    },
    {
      title: "an await that is no verb",
      changed: defineWorkflow("rollout", { version: 1, stallTimeout: "1s" }, async () => {
        await new Promise(() => undefined);
      }),
      reason: "has awaited something that is not a call on w",
    },
  ])("$title: $reason", async ({ title, changed, reason }) => {
    let history = await historyOf(rollout, ["wait"]);
    // Its parsed input is stored, and is not parsed again.
    if (title === "a stricter input") {
      const { parsedInput: _, ...rest } = history;
      history = rest;
    }
    bodies.length = 0;
    await expect(replay(history, changed)).rejects.toThrow(reason);
    expect(bodies).toEqual([]);
  });
});

test("code that continues differently after the last record fits", async () => {
  const history = await historyOf(rollout, []);
  const longer = code(async (w) => {
    await w.step("create", act("create"));
    await w.sleep("soak", "10m");
    await w.step("new", act("new"));
  });
  bodies.length = 0;
  await replay(history, longer);
  expect(bodies).toEqual([]);
});

test("a step that is between two attempts must still be called", async () => {
  const failing = code(async (w) => {
    await w.step("create", () => Promise.reject(new Error("busy")), {
      retry: { attempts: 3 },
    });
  });
  const t = testWorkflow(failing as never, { name: "web" });
  const history = {
    ...(await t.history()),
    progress: [{ name: "create", attempts: 1, untilMs: 0 }],
  };
  await replay(history, failing);
  const renamed = code(async (w) => await w.step("create vm", act("create vm")));
  await expect(replay(history, renamed)).rejects.toThrow(
    'step "create", which has begun, is not called any more; the code calls step "create vm"',
  );
});

describe("a run that is done", () => {
  test.each([
    {
      title: "another result",
      changed: code(async (w) => {
        await w.step("create", act("create"));
        return "other";
      }),
      reason: "the code returns another result",
    },
    {
      title: "an error",
      changed: code(async (w) => {
        await w.step("create", act("create"));
        throw new Error("no");
      }),
      reason: "the run is done, but the code throws no",
    },
    {
      title: "another step",
      changed: code(async (w) => {
        await w.step("create", act("create"));
        return await w.step("more", act("more"));
      }),
      reason: 'the run is done, but the code calls step "more"',
    },
  ])("does not fit $title", async ({ changed, reason }) => {
    const short = code(async (w) => {
      await w.step("create", act("create"));
      return { a: undefined, b: [1] };
    });
    const history = await historyOf(short, []);
    expect(history.status).toBe("done");
    await replay(history, short);
    await expect(replay(history, changed)).rejects.toThrow(reason);
  });
});
