import { runListSchema, runSchema, startRunResponseSchema } from "@konverge/contracts";
import { defineWorkflow, type Workflow } from "@konverge/workflow";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { openAnnounced } from "../queue/announce.ts";
import { runCommand } from "../../e2e/cli-runner.ts";
import { until } from "../../support/until.ts";
import { useApi, type Call } from "./api-harness.ts";
import { seed } from "../../support/test-run.ts";

const harness = useApi();

/** Waits for a signal, so that its runs can be signalled and cancelled. */
const leaf = defineWorkflow("leaf", { version: 1 }, async (w) => await w.signal("go"));
const nested: Workflow<readonly string[]> = defineWorkflow(
  "nested",
  { version: 1 },
  async (w, [name, ...below]: readonly string[]): Promise<unknown> =>
    name === undefined
      ? await w.child("leaf of all", leaf, undefined)
      : await w.child(name, nested, below),
);

// Names that a step may have, and ids that a caller may choose.
const stepName = fc
  .oneof(
    fc.string({ unit: "grapheme", minLength: 1, maxLength: 60 }),
    fc.constantFrom("smoke test", "a/b c", "..", "%2F", "100 %", "ü ✓", "x".repeat(200), "?a=b&c"),
  )
  .filter((name) => !/[#~!\p{Cc}]|^undo:/u.test(name) && name.length <= 200);
const chosenId = fc
  .oneof(
    fc.string({ unit: "grapheme", minLength: 1, maxLength: 60 }),
    fc.constantFrom("a/b", "../x", "%2F", "<script>", "x".repeat(500), "?", "a#b", "a~2"),
  )
  .filter((id) => !/[\s\p{Cc}]/u.test(id) && id.length <= 500);

async function allIds(call: Call): Promise<readonly string[]> {
  const ids: string[] = [];
  let cursor = "";
  do {
    const query = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const response = await call(`/v1/runs?limit=1${query}`);
    expect(response.status, cursor).toBe(200);
    const page = runListSchema.parse(await response.json());
    ids.push(...page.items.map(({ id }) => id));
    cursor = page.next ?? "";
  } while (cursor !== "");
  return ids;
}

test(`every id that the API returns can be used in it (KONVERGE_TEST_SEED=${seed})`, async () => {
  const { apiUrl: url, prefix } = harness.queues;
  const workflows = [nested, leaf];
  const runs = await openAnnounced(harness.queues, workflows);
  runs.work({ workflows });
  const call = harness.serve();
  const samples = fc.sample(
    fc.record({ id: chosenId, names: fc.array(stepName, { maxLength: 4 }) }),
    { seed, numRuns: 5 },
  );
  const started = new Set<string>();
  let expected = 0;
  // A repeated id would need the same input.
  for (const [id, names] of new Map(samples.map((sample) => [sample.id, sample.names]))) {
    const response = await call("/v1/runs", { body: { workflow: "nested", id, input: names } });
    expect(response.status, id).toBe(202);
    const answer = startRunResponseSchema.parse(await response.json());
    if (!answer.created) continue;
    started.add(answer.id);
    expected += names.length + 2;
  }
  const ids = await until("all runs exist", async () => {
    const found = await allIds(call);
    return found.length === expected ? found : undefined;
  });
  expect(new Set(ids).size).toBe(expected);
  for (const id of started) expect(ids).toContain(id);
  for (const id of ids) {
    const path = `/v1/runs/${encodeURIComponent(id)}`;
    const response = await call(path);
    expect(response.status, id).toBe(200);
    expect(runSchema.parse(await response.json()).id).toBe(id);
    const body = { name: "other", by: "ann" };
    expect((await call(`${path}/signal`, { body })).status, id).toBe(200);
  }
  const env = { KONVERGE_REDIS_URL: url, KONVERGE_PREFIX: prefix };
  const listed = await runCommand(["run", "list", "nested", "--limit", "500", "-o", "name"], env);
  const nestedIds = ids.filter((id) => id.startsWith("nested/"));
  expect(listed.stdout.trimEnd().split("\n").toSorted()).toEqual(nestedIds.toSorted());
  for (const id of ids.filter((_, at) => at % 3 === 0)) {
    const shown = await runCommand(["run", "get", id, "-o", "json"], env);
    expect(runSchema.parse(JSON.parse(shown.stdout)).id).toBe(id);
    const sent = await runCommand(["run", "signal", id, "other", "--by", "ann"], env);
    expect(sent.code, `${id}: ${sent.stderr}`).toBe(0);
  }
  // Parents first: they cancel their children.
  for (const id of ids.toReversed()) {
    const path = `/v1/runs/${encodeURIComponent(id)}`;
    const cancelled = await call(`${path}/cancel`, { body: { by: "ann", reason: "test" } });
    expect([200, 409], id).toContain(cancelled.status);
  }
  for (const id of started) {
    const path = `/v1/runs/${encodeURIComponent(id)}`;
    const ended = await until(`${id} ends`, async () => {
      const run = runSchema.parse(await (await call(path)).json());
      return run.endedAt === undefined ? undefined : run;
    });
    expect(["cancelled", "failed"]).toContain(ended.status);
    const retried = await call(`${path}/retry`, { body: { by: "ann", reason: "again" } });
    expect(retried.status, id).toBe(200);
    const again = runSchema.parse(await retried.json());
    expect((await call(`/v1/runs/${encodeURIComponent(again.id)}`)).status).toBe(200);
  }
});
