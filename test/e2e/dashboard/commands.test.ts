import { readFileSync } from "node:fs";
import { formatKey } from "@konverge/core";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { keyOf, useQueues, workOn } from "../../integration/queue/queue-harness.ts";
import { attemptRow, historyBatch, openHistoryWriter } from "../../support/history-batch.ts";
import { until } from "../../support/until.ts";
import { findBarriers, useChromium } from "./chromium.ts";
import { startOwnApi } from "./own-api.ts";

const harness = useQueues();
const open = useChromium();

const BY_TEST = { kind: "cli", by: "test" } as const;

/** Fills in the open dialog. */
async function confirm(page: Page, reason: string): Promise<void> {
  const dialog = page.locator("dialog[open]");
  await dialog.getByLabel("Your name").fill("ada");
  await dialog.getByRole("textbox", { name: "Reason" }).fill(reason);
  await dialog.getByRole("textbox", { name: "Reason" }).press("Enter");
  await dialog.waitFor({ state: "detached" });
}

test("Ctrl-K finds views, controllers and the actions of the page", async (context) => {
  const { page, troubles } = await open(context);
  const { url, queue } = await startOwnApi(harness);
  await queue.request(keyOf("blue"), BY_TEST);
  await page.goto(url);
  await page.locator("main h1").waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("option", { name: "Overview view" }).waitFor();
  expect(await findBarriers(page)).toEqual([]);
  await page.keyboard.type("node-p");
  await page.getByRole("option", { name: "node-pool controller" }).waitFor();
  await page.keyboard.press("Control+a");
  await page.keyboard.type("audit");
  await page.getByRole("option", { name: "Audit log view" }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Audit log" }).waitFor();

  await page.goto(new URL("/objects/default/node-pool/demo/blue", url).href);
  await page.getByRole("button", { name: "Pause" }).waitFor();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("paus");
  await page.getByRole("option", { name: "Pause action of this page" }).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await confirm(page, "maintenance");
  expect(await queue.control.listPauses()).toMatchObject([{ by: "ada", reason: "maintenance" }]);
  expect(troubles).toEqual([]);
});

test("acts on groups of equal errors and on selected objects, and lists them first", async (context) => {
  const { page, troubles } = await open(context);
  const { url, queue } = await startOwnApi(harness);
  const worker = workOn(queue, ({ id }) => {
    const name = id.split("/").at(-1) ?? "";
    const text = name.startsWith("red") ? `${name} is no domain` : `order 4711 of ${name} failed`;
    return { kind: "terminal", error: new Error(text) };
  });
  for (const name of ["blue-1", "blue-2", "red-1"]) await queue.request(keyOf(name), BY_TEST);
  await until("all are dead-lettered", () => worker.closed.length === 3);
  await page.goto(`${url}/dead-letters`);
  const group = page
    .getByRole("table", { name: /^Errors on this page/ })
    .getByRole("row", { name: /order 4711/ });
  expect(await group.textContent()).toMatch(/node-pool2/);
  await group.getByRole("button", { name: "Release group" }).click();
  const preview = page.getByRole("list", { name: "2 objects" });
  expect(await preview.innerText()).toMatch(/demo\/blue-1[\s\S]*demo\/blue-2/);
  await confirm(page, "the issuer is up");
  await until("both ran again", () => worker.closed.length === 5);

  await page.goto(`${url}/objects`);
  await page.getByRole("checkbox", { name: "Select demo/blue-1" }).check();
  await page.getByRole("checkbox", { name: "Select demo/red-1" }).check();
  await page.getByText("2 selected").waitFor();
  expect(await findBarriers(page)).toEqual([]);
  await page.getByRole("button", { name: "Pause 2" }).click();
  await confirm(page, "investigation");
  await page.getByText("None selected").waitFor();
  const pauses = await queue.control.listPauses();
  expect(pauses.map(({ reason }) => reason)).toEqual(["investigation", "investigation"]);

  await page.goto(`${url}/audit?action=pause`);
  const row = page.getByRole("row", { name: /pause default \/ node-pool \/ demo \/ red-1/ });
  expect(await row.textContent()).toMatch(/ada.*investigation/);
  expect(await findBarriers(page)).toEqual([]);
  expect(troubles).toEqual([]);
  await worker.stop();
});

test("attempts: limits the time, and exports rows without formulas", async (context) => {
  const { page, troubles, requests } = await open(context);
  const { url } = await startOwnApi(harness);
  const writer = openHistoryWriter(harness);
  for (const name of ["blue", "red"]) {
    const row = attemptRow({ key: formatKey(keyOf(name)), worker: "=cmd()" });
    await writer.flush(historyBatch({ rows: [{ recordBytes: 100, row }] }));
  }
  await page.goto(`${url}/attempts`);
  await page.getByRole("link", { name: "demo/red" }).waitFor();
  expect(requests.length, requests.join(" ")).toBeLessThanOrEqual(5);
  await page.getByRole("img", { name: /^Attempts per minute/ }).waitFor();
  await page.getByLabel("Controller").selectOption("node-pool");
  await page.getByLabel("Time").selectOption("1h");
  await page.getByRole("link", { name: "demo/red" }).waitFor();
  expect(await page.locator(".cli code").last().textContent()).toBe(
    "konverge attempt list --controller node-pool --since 1h",
  );
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export CSV" }).click();
  const lines = readFileSync(await (await saved).path(), "utf8").split("\r\n");
  expect(lines).toHaveLength(4);
  expect(lines[0]?.split(",")).toEqual(expect.arrayContaining(["id", "key", "controller"]));
  expect(lines[1]).toContain("'=cmd()");
  await page.goto(`${url}/attempts?until=2026-01-01T00:00:00.000Z`);
  await page.getByText("No matching attempts").waitFor();
  expect(await findBarriers(page)).toEqual([]);
  expect(troubles).toEqual([]);
});

test("hints and the documentation are pages of the dashboard, of any base path", async (context) => {
  const { page, troubles, requests } = await open(context);
  const { url } = await startOwnApi(harness);
  await page.goto(`${url}/hints/ownership_flip`);
  await page.getByRole("heading", { name: "ownership_flip" }).waitFor();
  await page.getByRole("link", { name: "Hints", exact: true }).click();
  await page.getByRole("heading", { name: "Hints" }).waitFor();
  await page.goto(`${url}/docs/outages`);
  await page.locator("article h1").waitFor();
  expect(requests.every((address) => address.startsWith(url))).toBe(true);
  expect(await findBarriers(page)).toEqual([]);
  await page.goto(`${url}/docs/none`);
  await page.getByText("Page not found").waitFor();
  expect(troubles).toEqual([]);
});

test("viewers have no selection, no bulk actions and no audit log", async (context) => {
  const { page } = await open(context);
  const { url, access, queue } = await startOwnApi(harness, {
    KONVERGE_TOKEN: "0123456789abcdef".repeat(2),
  });
  await queue.request(keyOf("blue"), BY_TEST);
  const { token } = await access.tokens.create({ name: "v", role: "viewer", scope: {} }, "test");
  await page.goto(`${url}/objects`);
  await page.getByLabel("Token").fill(token);
  await page.getByLabel("Token").press("Enter");
  await page.getByRole("link", { name: "demo/blue" }).waitFor();
  expect(await page.getByRole("checkbox").count()).toBe(0);
  expect(await page.getByRole("link", { name: "Audit log" }).count()).toBe(0);
  await page.goto(`${url}/audit`);
  await page.getByRole("alert").getByText("requires the role admin").waitFor();
});
