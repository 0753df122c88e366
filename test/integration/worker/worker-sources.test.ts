import { createHmac } from "node:crypto";
import { startApi } from "@konverge/api";
import { overviewSchema, readSettings, sourceListSchema } from "@konverge/contracts";
import { defineController, githubSignature, inbound, poll } from "@konverge/engine";
import { expect, onTestFinished, test } from "vitest";
import { until } from "../../support/until.ts";
import { useWorkers } from "./worker-harness.ts";

const workers = useWorkers("sources.test.konverge.dev");
const SECRET = "a secret of the test";

test("deliveries and polled items reconcile objects, and a failing source is a problem until it is corrected", async () => {
  const reconciled: string[] = [];
  let isBroken = true;
  const controller = defineController({
    name: "sourced",
    for: workers.Widgets,
    resync: "10h",
    sources: [
      inbound("github", {
        verify: githubSignature(),
        map: ({ data }) => ({ namespace: "default", name: (data as { name: string }).name }),
      }),
      poll({
        name: "items",
        every: 100,
        list: () => {
          if (isBroken) throw new Error("no route to the shop");
          return ["polled"];
        },
        key: (name) => ({ namespace: "default", name }),
      }),
    ],
    async reconcile({ object, triggers }) {
      for (const { by = "" } of triggers) reconciled.push(`${object.metadata.name} ${by}`);
    },
  });
  for (const name of ["delivered", "polled"]) {
    const metadata = { namespace: "default", name };
    await workers.client.create(workers.Widgets, { metadata, spec: { size: 1 } });
  }
  const worker = await workers.start([controller]);
  const settings = {
    ...readSettings({ env: { KONVERGE_INBOUND_SECRETS: `github=${SECRET.replaceAll(" ", "-")}` } }),
    redisUrl: workers.queues.apiUrl,
    prefix: workers.queues.prefix,
    apiPort: 0,
  };
  const api = await startApi({ settings: { ...settings, logLevel: "silent" }, version: "test" });
  onTestFinished(() => api.stop());
  const body = JSON.stringify({ name: "delivered" });
  const hmac = createHmac("sha256", SECRET.replaceAll(" ", "-")).update(body).digest("hex");
  const deliver = await fetch(`${api.url}/v1/inbound/github`, {
    method: "POST",
    body,
    headers: { "content-type": "application/json", "x-hub-signature-256": `sha256=${hmac}` },
  });
  expect(await deliver.json()).toEqual({
    id: expect.stringMatching(/^[\w-]{16}$/) as string,
    status: "accepted",
  });
  await until("it is reconciled", () => reconciled.includes("delivered inbound github"));

  const problems = async () => {
    const overview = overviewSchema.parse(await (await fetch(`${api.url}/v1/overview`)).json());
    return overview.problems.filter(({ code }) => code === "source_failing");
  };
  const [problem] = await until("the poll is a problem", async () => {
    const found = await problems();
    return found.length > 0 && found;
  });
  expect(problem).toMatchObject({
    controller: "sourced",
    subject: "items",
    cause: "no route to the shop",
  });
  const failures = async () =>
    Number(
      /^konverge_source_failures\{.*source="items".*\} (\d+)$/m.exec(await worker.metrics())?.[1],
    );
  expect(await failures()).toBeGreaterThanOrEqual(3);
  isBroken = false;
  await until("the item is reconciled", () => reconciled.includes("polled poll items"));
  await until("the problem has ended", async () => (await problems()).length === 0);
  expect(await failures()).toBe(0);
  const items = await until("the delivery is no longer listed as waiting", async () => {
    const list = sourceListSchema.parse(await (await fetch(`${api.url}/v1/sources`)).json());
    return list.items[0]?.waiting === 0 && list.items;
  });
  expect(items).toMatchObject([
    { name: "github", kind: "inbound", state: "ok", waiting: 0, worker: worker.workerId },
    { name: "items", kind: "poll", state: "ok", failures: 0 },
  ]);
  const text = await worker.metrics();
  expect(text).toMatch(
    /^konverge_source_requests_total\{.*controller="sourced",source="github".*\} 1$/m,
  );
  expect(text).toMatch(/^konverge_source_lag_seconds\{.*source="items".*\} \d/m);
  expect(await (await fetch(`${api.url}/metrics`)).text()).toMatch(
    /^konverge_inbound_deliveries_total\{.*source="github",result="accepted".*\} 1$/m,
  );
  await worker.stop({ graceMs: 1_000 });
});
