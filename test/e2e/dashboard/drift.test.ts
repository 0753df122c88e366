import { formatKey } from "@konverge/core";
import { createDriftStore, type Drift } from "@konverge/queue";
import type { PlanRecord } from "@konverge/records";
import { expect, test } from "vitest";
import { NODE_POOL } from "../../integration/queue/announce.ts";
import { keyOf, useQueues } from "../../integration/queue/queue-harness.ts";
import { findBarriers, MOBILE, useChromium } from "./chromium.ts";
import { startOwnApi } from "./own-api.ts";

const harness = useQueues();
const open = useChromium();
const AT = "2026-01-01T00:00:00Z";

function driftOf(name: string): Drift {
  const change = { resource: "configmaps", kind: "ConfigMap", namespace: "demo", name };
  const moved = [{ manager: "kubectl-edit", path: "data.size", at: AT }];
  return {
    key: formatKey(keyOf(name)),
    controller: "node-pool",
    since: AT,
    at: AT,
    summary: { created: 0, changed: 1, deleted: 0, replaced: 0, unchanged: 0 },
    changes: [{ ...change, action: "changed", fields: ["data.size"], moved }],
  };
}

function planOf({ key, controller, summary, changes }: Drift): PlanRecord {
  return {
    kind: "plan",
    id: "p",
    key,
    controller,
    worker: "w-1",
    startedAt: AT,
    finishedAt: AT,
    durationMs: 1,
    outcome: "done",
    complete: true,
    hash: "a".repeat(64),
    summary: summary as PlanRecord["summary"],
    changes: changes.map(({ fields: _fields, moved, ...change }) => ({
      ...change,
      writes: [{ verb: "apply", fieldManager: "node-pool", changed: true }],
      patch: { data: { size: "1" } },
      fieldsTakenOver: [...moved],
    })),
    events: [],
    externals: [],
    runs: [],
    gaps: [],
    reads: 1,
    calls: { count: 1, durationMs: 1, rateLimitMs: 0 },
  };
}

test("mobile, dark: groups equal changes with their managers, and shows the plan of an object", async (context) => {
  const options = { ...MOBILE, colorScheme: "dark" } as const;
  const { page, troubles } = await open(context, options);
  const controller = { ...NODE_POOL, observes: true };
  const { url } = await startOwnApi(harness, {}, { controller });
  await page.goto(`${url}/drift`);
  await page.getByText("Nothing to change by node-pool.").waitFor();
  const store = createDriftStore(harness.redis, { prefix: harness.prefix, cluster: "default" });
  for (const name of ["blue", "red"]) {
    await store.store(driftOf(name), JSON.stringify(planOf(driftOf(name))));
  }
  const group = page.getByRole("row", { name: /ConfigMap changed/ });
  await group.waitFor();
  expect(await group.textContent()).toMatch(
    /node-pool.*2.*data\.size.*kubectl-edit.*demo\/blue.*demo\/red/,
  );
  await page.getByRole("heading", { name: "2 objects" }).waitFor();
  expect(await findBarriers(page)).toEqual([]);
  const fits = async () =>
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(
      options.viewport.width,
    );
  await fits();

  await page
    .getByRole("table", { name: /^Objects/ })
    .getByRole("link", { name: "demo/blue" })
    .click();
  await page.getByRole("heading", { name: "Drift of blue" }).waitFor();
  await page.getByRole("row", { name: /^kubectl-edit.*data\.size/ }).waitFor();
  const fields = page.getByRole("table", { name: "Changed fields of configmaps demo/blue" });
  expect(await fields.innerText()).toMatch(/data\.size\s+taken over from kubectl-edit\s+"1"/);
  expect(await findBarriers(page)).toEqual([]);
  await fits();
  await store.remove(formatKey(keyOf("blue")));
  await page.getByText("The controller would change nothing for this object").waitFor();
  expect(troubles).toEqual([]);
});
