import { expect, test } from "vitest";
import { keyOf, useQueues, workOn } from "../../integration/queue/queue-harness.ts";
import { until } from "../../support/until.ts";
import { DESKTOP, findBarriers, useChromium } from "./chromium.ts";
import { startOwnApi } from "./own-api.ts";

const harness = useQueues();
const open = useChromium();

const BY_TEST = { kind: "cli", by: "test" } as const;

test("shows all times in UTC or in local time, and keeps the choice", async (context) => {
  const { page, troubles } = await open(context, { ...DESKTOP, timezoneId: "Asia/Kolkata" });
  const { url, queue } = await startOwnApi(harness);
  const worker = workOn(queue, () => ({ kind: "done" }));
  await queue.request(keyOf("blue"), BY_TEST);
  await until("it ran", () => worker.closed.length === 1);
  await page.goto(new URL("/objects/default/node-pool/demo/blue", url).href);
  const time = page.locator("details.attempt time").first();
  await time.getByText("UTC").waitFor();
  const iso = await time.getAttribute("datetime");
  expect(await time.innerText()).toContain(iso?.slice(11, 19));

  await page.getByRole("button", { name: /Times in UTC/ }).click();
  await time.getByText("GMT+5:30").waitFor();
  const local = new Date(Date.parse(iso ?? "") + 330 * 60_000).toISOString();
  expect(await time.innerText()).toContain(local.slice(11, 19));
  expect(await time.getAttribute("title")).toContain(local.slice(0, 10));
  await page.reload();
  await time.getByText("GMT+5:30").waitFor();
  expect(await findBarriers(page)).toEqual([]);
  expect(troubles).toEqual([]);
  await worker.stop();
});

test("title and icon of the tab show the state of the page", async (context) => {
  const { page } = await open(context);
  const { url, queue } = await startOwnApi(harness);
  const worker = workOn(
    queue,
    () => ({ kind: "retry", error: new Error("the quota is exhausted") }),
    { maxFailures: 1 },
  );
  const iconOf = () => page.locator('link[rel="icon"]').getAttribute("href");
  await page.goto(url);
  await page.getByRole("heading", { name: "No problems" }).waitFor();
  expect(await page.title()).toBe("✓ Overview · Konverge");
  const before = await iconOf();
  await queue.request(keyOf("blue"), BY_TEST);
  await page.getByRole("heading", { name: /error/ }).waitFor();
  expect(await page.title()).toMatch(/^✕ 1 error.* · Overview · Konverge$/);
  expect(await iconOf()).not.toBe(before);
  await page.getByRole("link", { name: "Workers" }).first().click();
  await page.getByRole("heading", { name: "Workers" }).waitFor();
  expect(await page.title(), "a page without a state has no mark").toBe("Workers · Konverge");
  await worker.stop();
});

test("the navigation of a narrow window scrolls to the current page", async (context) => {
  const { page } = await open(context, { viewport: { width: 390, height: 844 } });
  const { url } = await startOwnApi(harness);
  await page.goto(new URL("/workers", url).href);
  const current = page.locator(".side [aria-current]");
  await current.waitFor();
  const box = await current.boundingBox();
  expect(box?.x).toBeGreaterThanOrEqual(0);
  expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(390);
});
