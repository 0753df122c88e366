import { expect, test } from "vitest";
import { defined, RUN_STATUSES } from "@konverge/core";
import { listRuns, type RunCursor } from "../../../libs/workflow/src/store/list-runs.ts";
import type { RunFilter } from "../../../libs/workflow/src/store/run-queries.ts";
import { createRedisRunStore } from "../../../libs/workflow/src/store/redis-run-store.ts";
import { runNames } from "../../../libs/workflow/src/store/run-names.ts";
import type { Leave } from "../../../libs/workflow/src/store/run-journal-store.ts";
import type { RunStore } from "../../../libs/workflow/src/store/run-store.ts";
import type { RunSummary } from "../../../libs/workflow/src/store/run-record.ts";
import { seededRandom } from "../../../apps/demo/src/load/seeded-random.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { seed } from "../../support/test-run.ts";

const harness = useQueues();
const WORKFLOWS = ["deploy", "deploy-all", "test"];
const KEYS = [undefined, "team-a/web", "team-b/Web"];
const AUTHORS = [undefined, "ann", "controller node-pool/web"];
const ENDS: readonly (Leave | undefined)[] = [
  undefined,
  { kind: "waiting" },
  { kind: "blocked", reason: "old code", untilMs: 1 },
  { kind: "done", result: 1 },
  { kind: "failed", error: { code: "x", message: "y" } },
  { kind: "cancelled", error: { code: "x", message: "y" } },
];

const openStore = (): RunStore =>
  createRedisRunStore({
    call: (run) => run(harness.redis),
    prefix: harness.prefix,
    cluster: "c",
    retentionMs: 60_000,
  });

/** Sets the creation time, because runs of the same moment are rare otherwise. */
async function setCreated(workflow: string, id: string, createdAtMs: number): Promise<void> {
  const names = runNames(harness.prefix, "c", workflow);
  await harness.redis.hset(names.run(id), "createdAt", createdAtMs);
  for (const index of [names.index, `${names.statuses}queued`]) {
    await harness.redis.zadd(index, createdAtMs, id);
  }
}

async function readAll(
  store: RunStore,
  filter: RunFilter,
  { limit, between = async () => {} }: { limit: number; between?: () => Promise<void> },
): Promise<string[]> {
  const found: RunSummary[] = [];
  let from: RunCursor | undefined;
  for (;;) {
    const page = await listRuns(store, WORKFLOWS, { limit, filter, ...(from && { from }) });
    found.push(...page.runs);
    from = page.next;
    if (from === undefined) return found.map(({ workflow, id }) => `${workflow}/${id}`);
    await between();
  }
}

test("pages of any size return each matching run once, newest first, while other runs start and continue", async () => {
  console.log(`KONVERGE_TEST_SEED=${seed}`);
  const random = seededRandom(seed);
  const pick = <T>(choices: readonly T[]) => choices[Math.floor(random() * choices.length)] as T;
  const store = openStore();
  const all: { workflow: string; id: string }[] = [];
  const goOn = async (ref: { workflow: string; id: string }, lease: number) => {
    const held = await store.claim(ref, { lease, owner: `${lease}` });
    const end = pick(ENDS);
    if (held.kind === "held" && end !== undefined) await store.leave(held, end);
  };
  for (let n = 0; n < 90; n += 1) {
    const ref = { workflow: pick(WORKFLOWS), id: `${pick(["web", "Web", "é"])}-${n}` };
    const key = pick(KEYS);
    const by = pick(AUTHORS);
    await store.start({
      ...ref,
      version: 1,
      input: null,
      ...(key === undefined ? {} : { key: `${key}#${n % 3}` }),
      ...defined({ by }),
    });
    if ((await store.get(ref)) === undefined) continue;
    await setCreated(ref.workflow, ref.id, 1_000 + Math.floor(random() * 12));
    all.push(ref);
    if (random() < 0.8) await goOn(ref, 1);
  }
  const runs = await Promise.all(all.map(async (ref) => (await store.get(ref)) as RunSummary));
  const wanted = (fits: (run: RunSummary) => boolean) =>
    runs
      .filter(fits)
      .toSorted(
        (a, b) =>
          b.createdAtMs - a.createdAtMs ||
          Buffer.compare(Buffer.from(b.workflow), Buffer.from(a.workflow)) ||
          Buffer.compare(Buffer.from(b.id), Buffer.from(a.id)),
      )
      .map(({ workflow, id }) => `${workflow}/${id}`);

  for (const workflow of WORKFLOWS) {
    const counts = await store.counts(workflow);
    for (const status of RUN_STATUSES) {
      const counted = runs.filter((run) => run.workflow === workflow && run.status === status);
      expect(counts[status], `${status} runs of ${workflow}`).toBe(counted.length);
    }
  }
  for (const limit of [1, 2, 7, 89, 500]) {
    expect(await readAll(store, {}, { limit })).toEqual(wanted(() => true));
    for (const status of RUN_STATUSES) {
      expect(await readAll(store, { status }, { limit })).toEqual(
        wanted((run) => run.status === status),
      );
    }
  }
  expect(await readAll(store, { by: "ann" }, { limit: 3 })).toEqual(
    wanted(({ by }) => by === "ann"),
  );
  expect(await readAll(store, { key: "team-a/web#1", status: "waiting" }, { limit: 1 })).toEqual(
    wanted(({ key, status }) => key === "team-a/web#1" && status === "waiting"),
  );
  expect(await readAll(store, { text: "WEB" }, { limit: 5 })).toEqual(
    wanted(({ id, key, by }) => /web/i.test(`${id} ${key} ${by}`)),
  );

  const before = wanted(() => true);
  let more = 0;
  const between = async () => {
    await store.start({ workflow: pick(WORKFLOWS), id: `new-${more++}`, version: 1, input: null });
    await goOn(pick(all), 2 + more);
  };
  expect(await readAll(store, {}, { limit: 4, between })).toEqual(before);
});
