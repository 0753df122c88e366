import { defineController, type ReconcileContext } from "@konverge/engine";
import { defineWorkflow } from "@konverge/workflow";
import { expect, test } from "vitest";
import { simulate, type Scenario, type SimulateOptions } from "../../apps/cli/src/testing/index.ts";
import { nodePool } from "../../apps/examples/src/node-pool.ts";
import pool from "./node-pool.simulation.ts";
import { App, type AppObject } from "./planted/kinds.ts";
import { BUGS as KNOWN_BUGS } from "./planted/bugs.ts";
import { PERTURBED_BUGS } from "./planted/perturbed-bugs.ts";
import type { Planted } from "./planted/planted-bug.ts";
import { WORKFLOW_BUGS } from "./planted/workflow-bugs.ts";
import { isLongRun, seed as runSeed } from "../support/test-run.ts";

/** Seeds for each wrong controller or workflow at most. */
const WRONG = 150;
const RIGHT: SimulateOptions = { seeds: isLongRun ? 100 : 1, firstSeed: 1 + (runSeed % 500) };

const BUGS = [...KNOWN_BUGS, ...PERTURBED_BUGS, ...WORKFLOW_BUGS];
/** Seeds that find a bug, by the begin of its name. The test begins with them. */
const FOUND: Readonly<Record<string, number>> = {
  "double create": 10,
  "lost update": 21,
  "non-idempotent": 10,
  "wrong generation": 21,
  "swallowed error": 19,
  "name reuse": 38,
  "partial children": 58,
  "early finalizer": 19,
  "state in memory": 45,
  "surplus children": 59,
  "external call without": 10,
  "undo that needs": 25,
  "id per attempt": 14,
};

test("runs the example with faults", async () => {
  const { failure, runs } = await simulate(pool.config, pool.scenario, { ...RIGHT, seeds: 5 });
  expect(failure?.story).toBeUndefined();
  expect(runs).toBe(5);
});

function play(make: () => Planted, bug: (typeof BUGS)[number], options: SimulateOptions) {
  let current: Planted | undefined;
  const config = () => (current = make());
  return simulate(
    config,
    bug.scenario(() => current),
    options,
  );
}

test("has 35 bugs, of which 18 need no fault", () => {
  expect(BUGS).toHaveLength(35);
  expect(BUGS.filter(({ isPlain }) => isPlain)).toHaveLength(18);
});

test.each(BUGS)("finds $name", async (bug) => {
  const [, firstSeed = 1] = Object.entries(FOUND).find(([name]) => bug.name.startsWith(name)) ?? [];
  const { failure } = await play(bug.wrong, bug, { seeds: WRONG, firstSeed });
  expect(failure?.violations[0]?.check).toBe(bug.check);
  expect(failure?.seed === 0).toBe(bug.isPlain === true);
});

test.each(BUGS)("passes the correct version of $name", async (bug) => {
  const { failure } = await play(bug.right, bug, RIGHT);
  expect(failure?.story).toBeUndefined();
});

test("compares runs of workflows with those without faults", async () => {
  let tries = 0;
  const order = defineWorkflow("order", { version: 1 }, async (w) => {
    await w.step("first", () => (tries += 1));
    return await w.step("second", () => tries);
  });
  const config = () => {
    tries = 0;
    return { workflows: [order] };
  };
  const scenario: Scenario = {
    async run(user) {
      await user.start(order, null);
      await user.settled();
    },
  };
  const { failure } = await simulate(config, scenario, { seeds: 50, faults: ["crash"] });
  expect(failure?.violations[0]).toMatchObject({
    check: "the result without faults",
    detail: expect.stringContaining(
      "run order run-1 differs from the run without faults",
    ) as string,
  });
});

test("reports a blocked run", async () => {
  const order = defineWorkflow("order", { version: 1 }, async () => {
    throw new TypeError("a mistake");
  });
  const { failure } = await simulate(
    { workflows: [order] },
    {
      async run(user) {
        await user.start(order, null);
        await user.settled();
      },
    },
    { seeds: 0 },
  );
  expect(failure?.violations[0]).toMatchObject({
    check: "no blocked runs",
    detail: expect.stringContaining("a mistake") as string,
  });
});

test.each(["crash", "suspend", "fail"] as const)(
  "repeats the body of a step with the fault %s, but not after its record",
  async (kind) => {
    const bodies: string[][] = [];
    const order = defineWorkflow("order", { version: 1 }, async (w) => {
      await w.step("a", () => void bodies.at(-1)?.push("a"));
      await w.sleep("pause", "10m");
      await w.signal("go");
      await w.step("b", () => void bodies.at(-1)?.push("b"));
    });
    const config = () => {
      bodies.push([]);
      return { workflows: [order] };
    };
    const scenario: Scenario = {
      async run(user) {
        const run = await user.start(order, null);
        await user.settled();
        await user.signal(run, "go");
        await user.settled();
      },
    };
    const { failure } = await simulate(config, scenario, { seeds: 60, faults: [kind] });
    expect(failure?.story).toBeUndefined();
    const texts = new Set(bodies.map((each) => each.join("")));
    expect(texts).toContain("ab");
    expect([...texts].some((text) => /aa|bb/.test(text))).toBe(true);
    expect([...texts].filter((text) => !/^a+b+$/.test(text) && text !== "")).toEqual([]);
  },
);

test("repeats a failure with the same story", async () => {
  const bug = BUGS.find(({ name }) => name.startsWith("non-idempotent"))!;
  const options = { seeds: 50, firstSeed: 10 };
  const first = await play(bug.wrong, bug, options);
  const second = await play(bug.wrong, bug, options);
  expect(first.failure?.faults).toHaveLength(1);
  expect(second.failure?.story).toBe(first.failure?.story);
});

test("rejects options that do not exist", async () => {
  const options = { seed: 1 } as object;
  await expect(simulate(pool.config, pool.scenario, options)).rejects.toThrow(
    "seed: is not an option; valid options: seeds, firstSeed, faults",
  );
});

/** Runs a handler without faults. */
async function violationsOf(
  reconcile: (context: ReconcileContext<AppObject>) => Promise<void>,
): Promise<string> {
  const controller = defineController({ name: "bad", for: App, timeout: "10s", reconcile });
  const { failure } = await simulate(
    { controllers: [controller] },
    {
      async run(user) {
        await user.apply(App, { metadata: { name: "one" }, spec: { note: "none" } });
        await user.settled();
      },
    },
    { seeds: 0 },
  );
  return failure?.violations.map(({ check, detail }) => `${check}: ${detail}`).join("\n") ?? "";
}

test.each([
  [
    { mode: "observe" } as const,
    'has the mode "observe", so it writes nothing; omit the controller, or define it without mode',
  ],
  [
    { approval: { when: () => true } },
    "has approval, and no users approve its plans; define it without approval",
  ],
])("rejects a controller that waits for users or only plans: %j", async (options, reason) => {
  const definition = { name: "careful", for: App, reconcile: async () => undefined };
  const controllers = [defineController({ ...definition, ...options })];
  for (const config of [{ controllers }, () => ({ controllers })]) {
    await expect(simulate(config, { run: async () => undefined })).rejects.toThrow(
      `controllers: "careful" ${reason}`,
    );
  }
});

test("rejects network calls of a handler", async () => {
  const found = await violationsOf(async () => {
    await fetch("http://127.0.0.1:9/bill").catch(() => undefined);
  });
  expect(found).toContain("the code under test made a fetch of http://127.0.0.1:9/bill");
});

test("reports a handler whose state outlives a run", async () => {
  let runs = 0;
  const found = await violationsOf(async ({ object, kube }) => {
    if (object.spec.note !== "none") return;
    runs += 1;
    await kube.mutate(object, (draft) => {
      draft.spec.note = `run ${runs}`;
    });
    if (runs === 1) await kube.get(object);
  });
  expect(found).toContain("runs repeat: two runs without faults differ");
});

test("ends a handler that awaits something forever", async () => {
  const found = await violationsOf(() => new Promise(() => undefined));
  expect(found).toContain('controller "bad" exceeded its timeout of 10000 ms');
});

test("leaves timers and the clock of other code alone", async () => {
  const before = Date.now();
  let year = 0;
  const running = simulate(
    { controllers: [nodePool] },
    {
      run: async (user) => {
        await user.sleep(3_600_000);
        year = new Date().getUTCFullYear();
      },
    },
    { seeds: 1 },
  );
  expect(Date.now() - before).toBeLessThan(600_000);
  expect((await running).failure?.story).toBeUndefined();
  expect([year, setTimeout.name, Date.name]).toEqual([2026, "setTimeout", "Date"]);
});
