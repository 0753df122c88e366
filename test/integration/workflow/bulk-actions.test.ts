import { defined } from "@konverge/core";
import { expect, test } from "vitest";
import { defineWorkflow, type RunFilter, type RunStatus } from "@konverge/workflow";
import { actOnRuns, countBulk, type CountResult } from "../../../libs/workflow/src/bulk-actions.ts";
import { createRedisRunStore } from "../../../libs/workflow/src/store/redis-run-store.ts";
import { until } from "../../support/until.ts";
import { inStatus, useWorkflows } from "./workflow-harness.ts";

const harness = useWorkflows();
const author = { by: "ann", reason: "freeze" };

const gated = defineWorkflow("gated", { version: 1 }, async (w, fails: boolean) => {
  await w.signal("go");
  if (fails)
    await w.step("fail", () => Promise.reject(new Error("no")), { retry: { attempts: 1 } });
});

async function startAll(ids: readonly string[], fails = false) {
  const runs = harness.openRuns();
  runs.work({ workflows: [gated], workerId: "test" });
  for (const id of ids) {
    const [team = ""] = id.split("-");
    await runs.start(gated, fails, { id, key: id, labels: { team } });
  }
  for (const id of ids) await inStatus(runs, gated, id, "waiting");
  return runs;
}

async function statusesOf(runs: ReturnType<typeof harness.openRuns>) {
  const { runs: all } = await runs.list("gated", { limit: 100 });
  return Object.fromEntries(all.map(({ id, status }) => [id, status]));
}

test("pauses, resumes and ends the runs that match, and counts them before", async () => {
  const runs = await startAll(["web-1", "web-2", "db-1"]);
  const filter = { labels: { team: "web" } };
  const count = async (action: "pause" | "resume" | "terminate", more: RunFilter = filter) =>
    (await runs.countMatching(["gated"], { action, filter: more })).matched;
  const act = (action: "pause" | "resume" | "terminate", more: RunFilter = filter) =>
    runs.actOnMatching(["gated"], { action, filter: more, ...author });
  const done = { matched: 2, changed: 2, unchanged: 0, failed: 0, failures: [] };
  const range = [
    { workflow: "gated", id: "web-2" },
    { workflow: "gated", id: "web-1" },
  ];
  expect([await count("pause"), await count("resume")]).toEqual([2, 0]);
  expect(await act("pause")).toEqual({ ...done, range });
  expect(await statusesOf(runs)).toEqual({
    "web-1": "paused",
    "web-2": "paused",
    "db-1": "waiting",
  });
  expect((await runs.get({ workflow: "gated", id: "web-1" }))?.pause).toMatchObject(author);
  expect([await count("pause"), await count("resume"), await count("pause", {})]).toEqual([
    0, 2, 1,
  ]);
  expect(await act("pause")).toMatchObject({ matched: 0, changed: 0 });
  expect(await act("resume", { text: "WEB-1" })).toMatchObject({ matched: 1, changed: 1 });
  await inStatus(runs, gated, "web-1", "waiting");
  expect(await act("terminate", { status: "paused" })).toMatchObject({ matched: 1, changed: 1 });
  expect(await act("terminate", {})).toMatchObject({ matched: 2, changed: 2 });
  const cancelled = { "web-1": "cancelled", "web-2": "cancelled", "db-1": "cancelled" };
  expect(await statusesOf(runs)).toEqual(cancelled);
});

test("signals, cancels and retries the runs that match, and returns the first failures", async () => {
  const runs = await startAll(["a-1", "a-2", "a-3"], true);
  const signal = { name: "go" };
  const sent = await runs.actOnMatching(["gated"], { action: "signal", signal, ...author });
  expect(sent).toMatchObject({ matched: 3, changed: 3 });
  for (const id of ["a-1", "a-2", "a-3"]) await inStatus(runs, gated, id, "failed");
  // Another run holds the key of the second one.
  await runs.start(gated, false, { id: "other", key: "a-2" });
  await inStatus(runs, gated, "other", "waiting");
  const retry = { action: "retry", filter: { error: "step_failed", status: "failed" } } as const;
  expect(await runs.actOnMatching(["gated"], { ...retry, ...author })).toMatchObject({
    matched: 3,
    changed: 2,
    failed: 1,
    failures: [{ workflow: "gated", id: "a-2", code: "run_exists" }],
  });
  expect((await runs.get({ workflow: "gated", id: "a-1~2" }))?.retry).toMatchObject(author);
  const cancelled = await runs.actOnMatching(["gated"], { action: "cancel", ...author });
  expect(cancelled).toMatchObject({ matched: 3, changed: 3 });
  for (const id of ["a-1~2", "a-3~2", "other"]) await inStatus(runs, gated, id, "cancelled");
  const pause = { action: "pause", filter: { status: "done" } } as const;
  await expect(runs.actOnMatching(["gated"], pause)).rejects.toThrow(
    "pause does not apply to runs",
  );
  await expect(runs.countMatching(["gated"], { action: "retry" })).rejects.toMatchObject({
    code: "invalid_request",
    issues: [{ pointer: "/filter/status" }],
  });
});

/** A store with runs that wait for their first execution, and the number of its round trips. */
async function manyRuns(count: number) {
  let trips = 0;
  const options = { prefix: harness.prefix, cluster: "default", retentionMs: 3_600_000 };
  const store = createRedisRunStore({
    ...options,
    call: async (run) => {
      trips += 1;
      return await run(harness.redis);
    },
  });
  const ids = Array.from({ length: count }, (_, at) => `r${at}`);
  await Promise.all(
    ids.map((id) => store.start({ workflow: "many", id, version: 1, input: null })),
  );
  const awoken: string[] = [];
  const ports = {
    store,
    wake: async ({ id }: { id: string }) => void awoken.push(id),
    act: async () => undefined,
  };
  const tripsOf = async (work: () => Promise<unknown>) => {
    const before = trips;
    await work();
    return trips - before;
  };
  const counts = async (...statuses: RunStatus[]) => {
    const counted = await store.counts("many");
    return statuses.map((status) => counted[status]);
  };
  return { store, ports, awoken, tripsOf, counts };
}

test.each([
  { runs: 400, trips: 2 },
  { runs: 2_400, trips: 10 },
])("pauses $runs runs with $trips round trips", async ({ runs, trips }) => {
  const { ports, awoken, tripsOf, counts } = await manyRuns(runs);
  const pause = { action: "pause", ...author } as const;
  expect(await tripsOf(() => countBulk(ports, ["many"], pause))).toBe(1);
  const work = async () => {
    expect(await actOnRuns(ports, ["many"], pause)).toMatchObject({ matched: runs, changed: runs });
  };
  expect(await tripsOf(work)).toBe(trips);
  expect([awoken, await counts("queued", "paused")]).toEqual([[], [0, runs]]);
});

test("continues from the returned place, and finds runs that change their status meanwhile", async () => {
  const { store, ports, awoken, counts } = await manyRuns(2_500);
  const places: typeof store.places = async (...args) => {
    const page = await store.places(...args);
    // Of the next pages.
    for (const id of ["r0", "r700", "r1400"]) {
      await store.claim({ workflow: "many", id }, { lease: 1, owner: "o" });
    }
    return page;
  };
  let from: Parameters<typeof actOnRuns>[2]["from"];
  let matched = 0;
  let calls = 0;
  do {
    const request = { action: "pause", budgetMs: 0, ...author } as const;
    const answer = await actOnRuns({ ...ports, store: { ...store, places } }, ["many", "none"], {
      ...request,
      ...defined({ from }),
    });
    matched += answer.matched;
    from = answer.next;
    calls += 1;
  } while (from !== undefined);
  expect(matched).toBe(2_500);
  expect(calls).toBeGreaterThan(3);
  const [paused = 0, pausing = 0] = await counts("paused", "pausing");
  expect([paused + pausing, awoken.toSorted()]).toEqual([2_500, ["r0", "r1400", "r700"]]);
  await until("each is resumed", async () => {
    await actOnRuns(ports, ["many"], { action: "resume" });
    return (await counts("paused", "pausing")).every((count) => count === 0);
  });
});

test("a count without an index ends after its budget, and continues from its cursor", async () => {
  const { ports } = await manyRuns(4_500);
  const request = { action: "pause", filter: { text: "r" } } as const;
  const whole = await countBulk(ports, ["many"], request);
  expect(whole.next).toBeUndefined();
  const pages: number[] = [];
  for (let from: CountResult["next"] | null = null; from !== undefined;) {
    const page: CountResult = await countBulk(ports, ["many"], {
      ...request,
      budgetMs: 0,
      ...(from === null ? {} : { from }),
    });
    pages.push(page.matched);
    from = page.next;
  }
  expect(pages).toEqual([2_000, 2_000, 500]);
  expect(pages.reduce((sum, matched) => sum + matched, 0)).toBe(whole.matched);
});
