import { serveObjectReads } from "@konverge/queue";
import type { LiveObject } from "@konverge/contracts";
import type { AttemptRecord } from "@konverge/records";
import { expect, onTestFinished, test } from "vitest";
import { keyOf, useQueues, workOn } from "../../integration/queue/queue-harness.ts";
import { loggedRecord } from "../../integration/queue/logged-record.ts";
import { until } from "../../support/until.ts";
import { findBarriers, MOBILE, useChromium } from "./chromium.ts";
import { startOwnApi } from "./own-api.ts";

const harness = useQueues();
const open = useChromium();

const BY_TEST = { kind: "cli", by: "test" } as const;
const ADDRESS = "/objects/default/node-pool/demo/blue";

const canary = `<img src=x onerror="window.hacked='yes'">`;
const link = { apiVersion: "demo.konverge.dev/v1", kind: "Machine", namespace: "demo" };
const object: LiveObject = {
  kind: "found",
  readAt: "2026-01-01T00:00:00Z",
  isRedacted: false,
  object: {
    apiVersion: "demo.konverge.dev/v1",
    kind: "NodePool",
    metadata: { name: "blue", namespace: "demo" },
    spec: {
      size: 3,
      note: canary,
      ports: [
        { name: "web", port: 80 },
        { name: "dns", port: 53 },
      ],
    },
    status: {
      conditions: [
        { type: "Ready", status: "False", reason: "NoQuota", message: "quota is 0" },
        { type: "Stalled", status: "True", reason: "NoQuota", message: canary },
      ],
    },
  },
  fieldOwners: [
    { path: "spec.size", manager: "argocd", operation: "Apply", at: "2026-01-01T00:00:00Z" },
    { path: "spec.ports[name=dns].port", manager: "dns-sync", operation: "Update" },
  ],
  owners: [{ ...link, kind: "Fleet", name: "eu", isController: true }],
  children: [{ ...link, name: "blue-1", status: "failed" }],
  moreChildren: 0,
  events: [
    { type: "Warning", reason: "NoQuota", message: canary, count: 4, source: "quota-operator" },
  ],
};

/** Answers reads as a worker does. */
function serve(answer: LiveObject): void {
  const stop = serveObjectReads({
    redis: { url: harness.url },
    prefix: harness.prefix,
    cluster: "default",
    controllers: ["node-pool"],
    read: async () => JSON.stringify(answer),
    onError: (error) => expect.unreachable(String(error)),
  });
  onTestFinished(stop);
}

/** Fails four times with two errors, then succeeds. */
async function runFiveTimes(queue: Parameters<typeof workOn>[0]): Promise<void> {
  const worker = workOn(queue, ({ epoch }) => {
    const message = epoch < 4 ? "acme: rateLimited" : "acme: no such domain";
    const logged = JSON.parse(loggedRecord(epoch, [])) as AttemptRecord;
    if (epoch > 4) return { outcome: { kind: "done" }, record: JSON.stringify(logged) };
    const error = { code: "internal", message };
    const record = JSON.stringify({ ...logged, outcome: "retry", error });
    return { outcome: { kind: "retry", error: new Error(message) }, record };
  });
  for (let epoch = 1; epoch <= 5; epoch++) {
    await queue.request(keyOf("blue"), BY_TEST);
    await until(`attempt ${epoch} ended`, () => worker.closed.length >= epoch);
  }
  await worker.stop();
}

test.for([
  ["desktop", undefined],
  ["phone", MOBILE],
] as const)(
  "%s: an object's page shows conditions, YAML with owners, events and children",
  async ([, options], context) => {
    const { page, troubles, requests } = await open(context, options);
    const { url, queue } = await startOwnApi(harness, {}, { readsObjects: true });
    serve(object);
    await runFiveTimes(queue);
    await page.goto(new URL(ADDRESS, url).href);
    const conditions = page.getByRole("region", { name: "Conditions" });
    await conditions.getByText("NoQuota: quota is 0").waitFor();
    // The page, its script and style, the object, its live state and the explanation.
    expect(requests.length, requests.join(" ")).toBeLessThanOrEqual(6);
    const related = page.getByRole("region", { name: "Owners and children" });
    expect(await related.innerText()).toMatch(
      /Fleet eu controller[\s\S]*NodePool blue[\s\S]*failed/,
    );
    expect(await findBarriers(page)).toEqual([]);

    await page.getByRole("link", { name: "YAML" }).click();
    const row = (text: string) => page.locator(".yaml tr", { hasText: text });
    await row("size: 3").waitFor();
    expect(await row("size: 3").innerText()).toContain("argocd");
    expect(await row("port: 53").innerText()).toContain("dns-sync");
    expect(await row("port: 80").innerText()).not.toContain("dns-sync");
    expect(await findBarriers(page)).toEqual([]);

    await page.getByRole("link", { name: /^Events/ }).click();
    await page.getByText("quota-operator").waitFor();
    expect(await findBarriers(page)).toEqual([]);
    expect(await page.evaluate("window.hacked")).toBeUndefined();
    expect(troubles).toEqual([]);
  },
);

test("folds equal failures, and compares two attempts", async (context) => {
  const { page, troubles } = await open(context);
  const { url, queue } = await startOwnApi(harness);
  await runFiveTimes(queue);
  await page.goto(new URL(ADDRESS, url).href);
  await page
    .getByText("no worker", { exact: false })
    .or(page.getByText("cannot be read"))
    .first()
    .waitFor();
  const folded = page.getByRole("button", { name: /3 × failed.*acme: rateLimited/ });
  await folded.waitFor();
  expect(await page.locator("details.attempt").count()).toBe(2);
  await page.locator("[data-attempt='5'] > details > summary").click();
  await page.getByRole("link", { name: "Compare with the attempt before" }).click();
  const errors = page.getByRole("row", { name: /^Error/ });
  await errors.waitFor();
  expect(await errors.innerText()).toContain("acme: no such domain");
  await page.locator("main select").first().selectOption("1");
  await errors.getByText("acme: rateLimited").waitFor();
  expect(new URL(page.url()).searchParams.get("from")).toBe("1");
  expect(await findBarriers(page)).toEqual([]);
  // The strip opens an attempt of the folded ones.
  await page
    .getByRole("link", { name: /^Attempts/ })
    .first()
    .click();
  await page.goto(new URL(`${ADDRESS}?attempt=2`, url).href);
  await page.locator("[data-attempt='2'] > details[open]").waitFor();
  expect(troubles).toEqual([]);
});

test("an object that no worker can read has its attempts and the reason", async (context) => {
  const { page } = await open(context);
  const { url, queue } = await startOwnApi(harness);
  await queue.request(keyOf("blue"), BY_TEST);
  await page.goto(new URL(`${ADDRESS}?tab=yaml`, url).href);
  const reason = page.getByText(/KONVERGE_OBJECT_READS is off/);
  await reason.first().waitFor();
  expect(await page.locator("main").innerText()).toContain("The attempts are shown from Redis.");
});
