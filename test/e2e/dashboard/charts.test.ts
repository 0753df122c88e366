import { durationCounter } from "@konverge/queue";
import { createGuard } from "@konverge/guard";
import type { Page } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import { useQueues } from "../../integration/queue/queue-harness.ts";
import { attemptRow, historyBatch, openHistoryWriter } from "../../support/history-batch.ts";
import { findBarriers, useChromium } from "./chromium.ts";
import { startOwnApi } from "./own-api.ts";

const harness = useQueues();
const open = useChromium();

const KEY = "node-pool/default/nodepools.demo.konverge.dev/demo/blue";
const MOST_REQUESTS = 5;

/** 30 minutes with two attempts each, of which one failed. */
async function remember(): Promise<void> {
  const writer = openHistoryWriter(harness);
  const now = Math.floor(Date.now() / 60_000);
  await writer.flush(
    historyBatch({
      rows: [1, 2].map((epoch) => ({
        recordBytes: 100,
        row: attemptRow({
          key: KEY,
          epoch,
          outcome: "retry",
          errorCode: "quota",
          managers: ["argocd"],
        }),
      })),
      rollups: Array.from({ length: 30 }, (_, ago) => ({
        controller: "node-pool",
        minute: now - ago,
        counts: {
          "outcome.done": 1,
          "outcome.retry": 1,
          [durationCounter(20)]: 1,
          [durationCounter(2_000)]: 1,
        },
      })),
    }),
  );
  await writer.close();
}

/** The sum of all layout shifts, as Chromium scores them. */
async function layoutShift(page: Page): Promise<number> {
  return await page.evaluate(`new Promise((resolve) => {
    let sum = 0;
    new PerformanceObserver((list) => {
      for (const { value } of list.getEntries()) sum += value;
    }).observe({ type: "layout-shift", buffered: true });
    requestAnimationFrame(() => setTimeout(() => resolve(sum), 50));
  })`);
}

test("the overview plots the last hour in at most five requests, without a layout shift", async (context) => {
  const { page, troubles, requests } = await open(context);
  const { url } = await startOwnApi(harness);
  await remember();
  await page.goto(url);
  for (const name of [
    /^Attempts per minute: 60 in total, 30 failed/,
    /^Waiting requests/,
    /^API calls/,
  ]) {
    await page.getByRole("img", { name }).locator("canvas").waitFor();
  }
  const loaded = new Set(requests);
  expect(loaded.size, [...loaded].join("\n")).toBeLessThanOrEqual(MOST_REQUESTS);
  expect(await layoutShift(page)).toBeLessThan(0.02);
  await page.getByText("Show as table").click();
  const table = page.getByRole("region", { name: "Minutes, newest first" });
  // The sample of the API's start is in this minute or the one before.
  const waiting = await table.locator('tbody td[data-label="Waiting"]').allTextContents();
  expect(waiting.slice(0, 2)).toContain("0");
  expect(waiting.at(-1), "not measured").toBe("–");

  const row = page.getByRole("row", { name: /node-pool/ });
  expect(await row.innerText()).toMatch(/50%/);
  // The heartbeat of the worker may come later.
  await row.getByText("0 of 20").waitFor();
  await page
    .getByRole("button", { name: /^Details: node-pool: \d+ of \d+ attempts failed/ })
    .click();
  await page.getByText("Failed attempts are retried with backoff.").waitFor();
  expect(await findBarriers(page)).toEqual([]);
  expect(troubles).toEqual([]);
});

test("the page of a controller shows percentiles and errors, and zooms by a drag", async (context) => {
  const { page, troubles, requests } = await open(context);
  const { url } = await startOwnApi(harness);
  await remember();
  await page.goto(new URL("/controllers/node-pool", url).href);
  const durations = page.getByRole("img", { name: /^Attempt duration: p50 up to .*, p99 up to/ });
  await durations.locator("canvas").waitFor();
  expect(new Set(requests).size).toBeLessThanOrEqual(MOST_REQUESTS);
  expect(await layoutShift(page)).toBeLessThan(0.02);
  await page.getByRole("link", { name: "quota" }).waitFor();
  await page.getByRole("link", { name: "demo/blue" }).waitFor();
  await page.getByRole("link", { name: "argocd" }).waitFor();
  expect(await findBarriers(page)).toEqual([]);

  const plot = durations.locator(".u-over");
  const box = await plot.boundingBox();
  if (box === null) throw new Error("the chart has no box");
  const y = box.y + box.height / 2;
  // The chart begins with the first data, 30 minutes ago.
  await page.mouse.move(box.x + box.width * 0.25, y);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.75, y, { steps: 5 });
  await page.mouse.up();
  await page.waitForURL(/from=.*&to=/);
  const attempts = page.getByRole("img", { name: /^Attempts per minute: (2\d|3\d) in total/ });
  await attempts.waitFor();
  await page.reload();
  await attempts.waitFor();
  await page.getByRole("button", { name: "Reset zoom" }).click();
  await page.getByRole("img", { name: /^Attempts per minute: 60 in total/ }).waitFor();
  expect(troubles).toEqual([]);
});

test("guards show waiting calls by class, and workers their slots, memory and leadership", async (context) => {
  const { page, troubles, requests } = await open(context);
  const guard = await createGuard({
    redis: { url: harness.url },
    prefix: harness.prefix,
    cluster: "default",
    workerId: "w-1",
  });
  onTestFinished(() => guard.close());
  const { url } = await startOwnApi(harness);
  await page.goto(new URL("/guards", url).href);
  await page.getByText("5 resync, 2 event").waitFor();
  await page
    .getByRole("img", { name: /^Calls that wait for a token/ })
    .locator("canvas")
    .waitFor();
  expect(new Set(requests).size).toBeLessThanOrEqual(MOST_REQUESTS);
  expect(await page.title()).toBe("✓ Guards · Konverge");
  expect(await findBarriers(page)).toEqual([]);

  await page.goto(new URL("/workers", url).href);
  const row = page.getByRole("row", { name: /w-1/ });
  await row.getByText("3 of 20").waitFor();
  expect(await row.innerText()).toMatch(/200 MiB/);
  expect(await row.innerText()).toMatch(/4 ms late\s+30\s/);
  const leads = row.getByText("1 of 1");
  expect(await leads.getAttribute("title")).toBe("node-pool");
  expect(await findBarriers(page)).toEqual([]);
  expect(troubles).toEqual([]);
});
