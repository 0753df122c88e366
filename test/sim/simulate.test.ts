import { defineController, type ReconcileContext } from "@konverge/engine";
import { expect, test } from "vitest";
import { simulate, type Scenario } from "../../apps/cli/src/testing/index.ts";
import { nodePool } from "../../apps/examples/src/node-pool.ts";
import { NodePool } from "../../apps/examples/src/resources.ts";
import { App, type AppObject } from "./planted/kinds.ts";
import { BUGS as KNOWN_BUGS } from "./planted/bugs.ts";
import { PERTURBED_BUGS } from "./planted/perturbed-bugs.ts";
import type { Planted } from "./planted/planted-bug.ts";

/** Seeds per correct controller, and for each wrong one at most. */
const [RIGHT, WRONG] = process.env["KONVERGE_TEST_LONG"] === "1" ? [500, 2_000] : [3, 150];

const BUGS = [...KNOWN_BUGS, ...PERTURBED_BUGS];

const scenario: Scenario = {
  async run(user) {
    const pool = await user.apply(NodePool, { metadata: { name: "blue" }, spec: { replicas: 3 } });
    await user.settled();
    await user.apply(NodePool, { metadata: { name: "blue" }, spec: { replicas: 1 } });
    await user.settled();
    await user.delete(pool);
    await user.settled();
  },
};

test("runs the example with faults", async () => {
  const { failure, runs } = await simulate({ controllers: [nodePool] }, scenario, { seeds: 20 });
  expect(failure?.story).toBeUndefined();
  expect(runs).toBe(20);
});

function play(make: () => Planted, bug: (typeof BUGS)[number], seeds: number) {
  let current: Planted | undefined;
  const config = () => (current = make());
  return simulate(
    config,
    bug.scenario(() => current),
    { seeds },
  );
}

test.each(BUGS)("finds $name", async (bug) => {
  const { failure } = await play(bug.wrong, bug, WRONG);
  expect(failure?.violations[0]?.check).toBe(bug.check);
  expect(failure?.seed === 0).toBe(bug.isPlain === true);
});

test.each(BUGS)("passes the correct version of $name", async (bug) => {
  const { failure } = await play(bug.right, bug, RIGHT);
  expect(failure?.story).toBeUndefined();
});

test("repeats a failure with the same story", async () => {
  const bug = BUGS.find(({ name }) => name.startsWith("non-idempotent"))!;
  const first = await play(bug.wrong, bug, 50);
  const second = await play(bug.wrong, bug, 50);
  expect(first.failure?.faults).toHaveLength(1);
  expect(second.failure?.story).toBe(first.failure?.story);
});

test("rejects options that do not exist", async () => {
  const options = { seed: 1 } as object;
  await expect(simulate({ controllers: [nodePool] }, scenario, options)).rejects.toThrow(
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
