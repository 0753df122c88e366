import type { AttemptRecord } from "@konverge/records";
import { expect, test } from "vitest";
import { keyOf, useQueues, workOn } from "../../integration/queue/queue-harness.ts";
import { loggedRecord } from "../../integration/queue/logged-record.ts";
import { until } from "../../support/until.ts";
import { findBarriers, MOBILE, useChromium } from "./chromium.ts";
import { startOwnApi } from "./own-api.ts";

const harness = useQueues();
const open = useChromium();

const BY_TEST = { kind: "cli", by: "test" } as const;

test("a dead letter is not reported as retried, and its attempts have addresses", async (context) => {
  const { page, troubles } = await open(context);
  const { url, queue } = await startOwnApi(harness);
  const error = { code: "internal", message: "acme: rateLimited" } as const;
  const worker = workOn(
    queue,
    ({ epoch }) => {
      const logged = JSON.parse(loggedRecord(epoch, ["called acme"])) as AttemptRecord;
      const record = JSON.stringify({ ...logged, outcome: "retry", error });
      return { outcome: { kind: "retry", error: new Error(error.message) }, record };
    },
    { maxFailures: 1 },
  );
  await queue.request(keyOf("blue"), BY_TEST);
  await until("it is dead-lettered", async () => {
    const { items } = await queue.control.listKeys({ phase: "deadLettered", limit: 1 });
    return items.length === 1;
  });
  await page.goto(new URL("/objects/default/node-pool/demo/blue", url).href);
  await page.locator(".object-sentence").getByText("Dead-lettered").waitFor();
  const facts = page.locator("dl.facts");
  expect(await facts.innerText()).toContain("and dead-lettered");
  await expect.poll(() => page.title()).toBe("✕ blue · node-pool · Konverge");
  expect(await page.locator("main").innerText()).not.toMatch(/will (be )?retr|next attempt/);

  const row = page.locator("details.attempt").first();
  expect(await row.locator("> summary").innerText(), "the message is on the row").toContain(
    error.message,
  );
  expect(await row.locator("> summary").innerText(), "times state their zone").toContain("UTC");
  await row.locator("> summary").click();
  await page.waitForURL(/attempt=\d+/);
  await page.reload();
  await page.getByText("called acme").waitFor();
  expect(await findBarriers(page)).toEqual([]);
  expect(troubles).toEqual([]);
  await worker.stop();
});

test("the page of an object explains its state, with links, on wide and narrow windows", async (context) => {
  const { page, troubles } = await open(context);
  const { url, queue } = await startOwnApi(harness);
  const error = { code: "internal", message: "acme: rateLimited" } as const;
  const worker = workOn(
    queue,
    ({ epoch }) => {
      const logged = JSON.parse(loggedRecord(epoch, [])) as AttemptRecord;
      const record = JSON.stringify({ ...logged, outcome: "retry", error });
      return { outcome: { kind: "retry", error: new Error(error.message) }, record };
    },
    { maxFailures: 1 },
  );
  await queue.request(keyOf("blue"), BY_TEST);
  await until("it is dead-lettered", async () => {
    const { items } = await queue.control.listKeys({ phase: "deadLettered", limit: 1 });
    return items.length === 1;
  });
  await page.goto(new URL("/objects/default/node-pool/demo/blue", url).href);
  const chain = page.getByRole("list").filter({ hasText: "Attempt 1 failed" }).first();
  await chain.waitFor();
  const causes = await chain.locator("> li").allInnerTexts();
  expect(causes[0]).toContain("acme: rateLimited");
  expect(causes.join("\n")).toContain("dead-lettered");
  const links = await chain
    .getByRole("link")
    .evaluateAll((found) => found.map((link) => link.getAttribute("href")));
  expect(links).toEqual(expect.arrayContaining(["/docs/errors", "/dead-letters"]));
  await page.setViewportSize(MOBILE.viewport);
  const width = await page.evaluate("document.documentElement.scrollWidth");
  expect(width).toBeLessThanOrEqual(MOBILE.viewport.width);
  expect(await findBarriers(page)).toEqual([]);
  expect(troubles).toEqual([]);
  await worker.stop();
});

test("back returns to the same place of a list", async (context) => {
  const { page } = await open(context);
  const { url, queue } = await startOwnApi(harness);
  for (let at = 0; at < 60; at++) await queue.request(keyOf(`pool-${at}`), BY_TEST);
  await page.goto(new URL("/objects", url).href);
  const link = page.getByRole("link", { name: /pool-9$/ });
  await link.scrollIntoViewIfNeeded();
  const before = Number(await page.evaluate("window.scrollY"));
  expect(before).toBeGreaterThan(0);
  await link.click();
  await page.getByRole("heading", { name: "pool-9" }).waitFor();
  await page.goBack();
  await until("the list is where it was", async () => {
    return Math.abs(Number(await page.evaluate("window.scrollY")) - before) < 5;
  });
});
