import { readSettings, runHistoryListSchema, runHistorySchema } from "@konverge/contracts";
import { defineWorkflow, type AnyWorkflow, type Workflows } from "@konverge/workflow";
import { expect, onTestFinished, test } from "vitest";
import { openAnnounced } from "../queue/announce.ts";
import { openClient } from "../../../apps/cli/src/ask/open-client.ts";
import { checkLiveRuns } from "../../../apps/cli/src/config/check-live-runs.ts";
import { replay } from "../../../apps/cli/src/testing/index.ts";
import { until } from "../../support/until.ts";
import { problemIn, useApi } from "./api-harness.ts";

const harness = useApi({ announces: false });
const BIG = "x".repeat(60_000);

const rollout = defineWorkflow("rollout", { version: 1 }, async (w, kind: string) => {
  await w.step("create", () => kind);
  if (kind === "big") {
    for (let part = 0; part < 8; part += 1) await w.step(`part ${part}`, () => BIG);
  }
  await w.signal("approve");
  await w.step(
    "finish",
    () => {
      if (kind === "fails") throw new Error("no");
    },
    { retry: { attempts: 1 } },
  );
  return kind;
});

/** Announces and runs the workflows, as a worker process does. */
async function work(...workflows: readonly AnyWorkflow[]): Promise<Workflows> {
  const runs = await openAnnounced(harness.queues, workflows);
  runs.work({ workflows });
  return runs;
}
const inStatus = (runs: Workflows, id: string, status: string, workflow = "rollout") =>
  until(`${id} is ${status}`, async () => (await runs.get({ workflow, id }))?.status === status);

test("returns the history of a run, which replays with its code", async () => {
  const call = harness.serve();
  const runs = await work(rollout);
  await runs.start(rollout, "plain", { id: "a" });
  await inStatus(runs, "a", "waiting");
  const read = async () =>
    runHistorySchema.parse(await (await call("/v1/runs/rollout%2Fdefault%2Fa/history")).json());
  const live = await read();
  expect(live).toMatchObject({
    workflow: "rollout",
    id: "a",
    version: 1,
    status: "waiting",
    input: "plain",
    steps: [{ name: "create", kind: "step", value: "plain", seq: 1 }],
  });
  await replay(live as never, rollout);
  await runs.signal({ workflow: "rollout", id: "a" }, "approve");
  await inStatus(runs, "a", "done");
  const ended = await read();
  expect(ended).toMatchObject({ status: "done", result: "plain" });
  await replay(ended as never, rollout);
  const missing = await call("/v1/runs/rollout%2Fdefault%2Fb/history");
  expect(await problemIn(missing)).toMatchObject({ status: 404, code: "not_found" });
});

test("lists histories in pages, which end early if they are long", async () => {
  const call = harness.serve();
  const runs = await work(rollout);
  const ids = Array.from({ length: 12 }, (_, at) => `big-${at}`);
  for (const id of ids) await runs.start(rollout, "big", { id });
  for (const id of ids) await inStatus(runs, id, "waiting");
  const pages: number[] = [];
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const query = `workflow=rollout&status=waiting&limit=100${cursor === undefined ? "" : `&cursor=${encodeURIComponent(cursor)}`}`;
    const answer = await (await call(`/v1/run-histories?${query}`)).json();
    const { items, next } = runHistoryListSchema.parse(answer);
    pages.push(items.length);
    seen.push(...items.map(({ id }) => id));
    cursor = next;
  } while (cursor !== undefined);
  expect(pages).toEqual([10, 2]);
  expect(seen.toSorted()).toEqual(ids.toSorted());
  const small = await (await call("/v1/run-histories?workflow=rollout&limit=5")).json();
  expect(runHistoryListSchema.parse(small).items).toHaveLength(5);
});

test("counts the live runs that new code fits, and those that would block, by difference", async () => {
  const gone = defineWorkflow("gone", { version: 1 }, async (w) => await w.signal("approve"));
  const runs = await work(rollout, gone);
  const plain = Array.from({ length: 7 }, (_, at) => `plain-${at}`);
  const other = Array.from({ length: 5 }, (_, at) => `other-${at}`);
  for (const id of plain) await runs.start(rollout, "plain", { id });
  for (const id of other) await runs.start(rollout, "other", { id });
  await runs.start(gone, undefined, { id: "g" });
  await runs.start(rollout, "renamed", { id: "renamed" });
  await runs.start(rollout, "fails", { id: "ended" });
  for (const id of [...plain, ...other, "renamed", "ended"]) await inStatus(runs, id, "waiting");
  await inStatus(runs, "g", "waiting", "gone");
  await runs.signal({ workflow: "rollout", id: "ended" }, "approve");
  await inStatus(runs, "ended", "failed");

  const opened = await openClient(
    readSettings({
      env: { KONVERGE_REDIS_URL: harness.queues.apiUrl, KONVERGE_PREFIX: harness.queues.prefix },
    }),
  );
  const { client } = opened;
  onTestFinished(() => opened.close());
  const bodies: string[] = [];
  const next = defineWorkflow("rollout", { version: 1 }, async (w, kind: string) => {
    if (kind === "other") return void (await w.signal("create"));
    if (kind === "renamed") return await w.step("make", () => void bodies.push(kind));
    await w.step("create", () => void bodies.push(kind));
    await w.signal("approve");
    await w.step("announce", () => void bodies.push(kind));
  });
  const same = await checkLiveRuns(client, "default", { workflows: [rollout, gone] });
  expect(same).toEqual({ fit: 14, misfits: [] });
  const { fit, misfits } = await checkLiveRuns(client, "default", { workflows: [next] });
  expect(fit).toBe(7);
  expect(misfits).toMatchObject([
    { reason: 'step "create" became a signal', blocks: true, runs: 5 },
    { reason: "the configuration has no such workflow", blocks: true, runs: 1, examples: [] },
    {
      reason: 'step "create" is not called any more; the code calls step "make" instead',
      blocks: false,
      runs: 1,
      examples: ["rollout/default/renamed"],
    },
  ]);
  expect(misfits[0]?.examples).toHaveLength(3);
  expect(misfits[0]?.examples[0]).toMatch(/^rollout\/default\/other-\d$/);
  expect(bodies).toEqual([]);
});
