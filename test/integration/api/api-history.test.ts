import {
  attemptPageSchema,
  contentionSchema,
  contentionReportSchema,
  problemSchema,
  rollupsSchema,
} from "@konverge/contracts";
import { parseKey } from "@konverge/core";
import { expect, test } from "vitest";
import { useApi } from "./api-harness.ts";
import { historyBatch, openHistoryWriter } from "../../support/history-batch.ts";

const api = useApi();
const harness = api.queues;
const call = (path: string) => api.serve()(path);

const HISTORY_ROW = {
  key: "node-pool/default/nodepools.demo.konverge.dev/demo/blue",
  epoch: 3,
  outcome: "rejected",
  errorCode: "kube_api.Invalid",
  managers: ["hpa"],
  hints: ["own_spec_written"],
  startedAtMs: Date.parse("2026-01-01T00:00:00Z"),
  durationMs: 7,
  conflicts: 1,
  writes: 0,
  calls: 2,
  worker: "w-1",
  errorMessage: "spec.size: must be\n  positive",
} as const;
const LOOP = {
  kind: "ownershipFlip",
  count: 3,
  step: 1,
  sinceMs: 1,
  untilMs: Date.parse("2026-01-01T00:00:00Z"),
  paths: ["spec.replicas"],
  managers: ["hpa"],
  worker: "w-1",
  protection: "throttle",
};

/** Stores the Redis keys of a worker's history. */
async function remember(startedAtMs: number = HISTORY_ROW.startedAtMs): Promise<void> {
  const writer = openHistoryWriter(harness);
  const object = "nodepools.demo.konverge.dev/demo/blue";
  const taken = { kind: "takeover", manager: "hpa", path: "spec.replicas", count: 3 } as const;
  const lost = {
    kind: "conflict",
    manager: "<b>kubectl</b>",
    path: "spec.size",
    count: 2,
  } as const;
  await writer.flush(
    historyBatch({
      rows: [
        { row: { ...HISTORY_ROW, startedAtMs }, recordBytes: 100 },
        {
          row: { ...HISTORY_ROW, startedAtMs, key: HISTORY_ROW.key.replace("blue", "red") },
          recordBytes: 100,
        },
      ],
      contention: [{ object, conflicts: 2, pairs: [taken, lost] }],
      rollups: [
        {
          controller: "node-pool",
          minute: Math.floor(Date.now() / 60_000),
          counts: { "outcome.done": 4, "outcome.retry": 1, calls: 9, ms: 50 },
        },
      ],
      loops: new Map([[HISTORY_ROW.key, JSON.stringify(LOOP)]]),
    }),
  );
}
const answerOf = async (path: string): Promise<unknown> => {
  const response = await call(path);
  expect(response.status, path).toBe(200);
  return await response.json();
};

test("GET /v1/attempts applies each filter and pages", async () => {
  await remember();
  const listed = async (query: string) =>
    attemptPageSchema.parse(await answerOf(`/v1/attempts?${query}`));
  const { items } = await listed("name=blu");
  expect(items).toEqual([
    {
      id: `${HISTORY_ROW.key}#3`,
      key: HISTORY_ROW.key,
      controller: "node-pool",
      resource: "nodepools.demo.konverge.dev",
      namespace: "demo",
      name: "blue",
      outcome: "rejected",
      errorCode: "kube_api.Invalid",
      managers: ["hpa"],
      hints: ["own_spec_written"],
      startedAt: "2026-01-01T00:00:00.000Z",
      durationMs: 7,
      conflicts: 1,
      writes: 0,
      calls: 2,
      worker: "w-1",
      errorMessage: "spec.size: must be positive",
    },
  ]);
  for (const query of [
    "",
    "kind=NodePool",
    "kind=nodepools",
    "kind=nodepools.demo.konverge.dev",
    "namespace=demo",
    "controller=node-pool",
    "outcome=rejected",
    "error=Invalid",
    "error=kube_api",
    "manager=hpa",
    "hint=own_spec_written",
    "since=2026-01-01T00:00:00Z",
    "until=2999-01-01T00:00:00Z",
  ]) {
    expect((await listed(query)).items, query).toHaveLength(2);
  }
  for (const query of [
    "kind=Pod",
    "namespace=x",
    "controller=x",
    "outcome=done",
    "error=x",
    // Rows are found by the time at which they were stored.
    "until=2026-01-01T00:00:00Z",
    "since=2999-01-01T00:00:00Z",
  ]) {
    expect((await listed(query)).items, query).toEqual([]);
  }
  const first = await listed("limit=1");
  expect(first.items).toMatchObject([{ name: "red" }]);
  const second = await listed(`limit=1&cursor=${first.next}`);
  expect(second.items).toMatchObject([{ name: "blue" }]);
});

test.each([
  ["/v1/attempts?limit=0", "/limit"],
  ["/v1/attempts?limit=1000", "/limit"],
  ["/v1/attempts?limit=many", "/limit"],
  ["/v1/attempts?cursor=x", "/cursor"],
  ["/v1/attempts?nmae=x", "/nmae"],
  ["/v1/attempts?outcome=failed", "/outcome"],
  ["/v1/attempts?since=monday", "/since"],
  ["/v1/attempts?hint=loop", "/hint"],
  ["/v1/events?outcome=failed", "/outcome"],
  ["/v1/attempts?name=", "/name"],
  ["/v1/contention?hours=25", "/hours"],
  ["/v1/rollups", "/controller"],
])("%s returns 422 with a fix", async (path, pointer) => {
  const problem = problemSchema.parse(await (await call(path)).json());
  expect(problem).toMatchObject({ status: 422, code: "invalid_request" });
  expect(problem.errors?.map((error) => error.pointer)).toEqual([pointer]);
  expect(problem.errors?.[0]?.detail).toMatch(/must|remove/);
});

test("reports contention by object and by cluster", async () => {
  await remember();
  const { queue } = await api.access.find("default", "node-pool");
  await queue.request(parseKey(HISTORY_ROW.key), { kind: "http" });
  const path = "default/node-pool/demo/blue";
  const contention = contentionSchema.parse(await answerOf(`/v1/objects/${path}/contention`));
  expect(contention).toMatchObject({
    resource: "nodepools.demo.konverge.dev",
    namespace: "demo",
    name: "blue",
    loop: LOOP,
  });
  expect(
    contention.competingWriters.map(({ kind, manager, count }) => [kind, manager, count]),
  ).toEqual(
    expect.arrayContaining([
      ["takeover", "hpa", 3],
      ["conflict", "<b>kubectl</b>", 2],
    ]),
  );
  const report = contentionReportSchema.parse(await answerOf("/v1/contention"));
  expect(report).toMatchObject({
    contendedObjects: [{ name: "blue", namespace: "demo", conflicts: 2 }],
    ownershipFlips: [{ name: "blue", manager: "hpa", path: "spec.replicas", count: 3 }],
    loops: [{ key: HISTORY_ROW.key, kind: "ownershipFlip" }],
  });
  const rollups = rollupsSchema.parse(await answerOf("/v1/rollups?controller=node-pool"));
  expect(rollups.items).toMatchObject([
    { attempts: 5, outcomes: { done: 4, retry: 1 }, calls: 9, ms: 50, conflicts: 0 },
  ]);
  expect((await call("/v1/rollups?controller=none")).status).toBe(404);
  // The rows are older than the hour.
  expect(report.competingManagers).toEqual([]);
  await remember(Date.now());
  const { competingManagers } = contentionReportSchema.parse(await answerOf("/v1/contention"));
  expect(competingManagers).toEqual([{ controller: "node-pool", manager: "hpa", attempts: 2 }]);
});
