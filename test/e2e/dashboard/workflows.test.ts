import { expect, test } from "vitest";
import { keyOf, useQueues } from "../../integration/queue/queue-harness.ts";
import { DESKTOP, findBarriers, MOBILE, useChromium } from "./chromium.ts";
import { inStatus, rollout, sentenceOf, stageRuns, started } from "./run-stage.ts";
import { partsOfRun } from "../../support/test-run.ts";

const harness = useQueues();
const open = useChromium();

test("lists runs with their waits, filters by the address, and updates live", async (context) => {
  const { page, troubles } = await open(context);
  const { url, runs } = await stageRuns(harness);
  await started(runs, "web-1");
  await page.goto(url);
  await page.getByRole("link", { name: "Workflows" }).click();
  const row = page.getByRole("row", { name: /web-1 rollout/ });
  await row.getByText("waiting").waitFor();
  expect(await row.textContent()).toMatch(/for signal approve, times out in 24 h/);

  await page.getByLabel("Workflow").selectOption("smoke");
  await page.getByRole("row", { name: /web-1\.smoke/ }).waitFor();
  await expect.poll(() => page.locator("tbody tr").count()).toBe(1);
  expect(new URL(page.url()).search).toBe("?workflow=smoke");
  expect(await page.locator(".cli code").last().textContent()).toBe("konverge run list smoke");
  await page.goBack();

  await page.goto(`${url}/workflows?workflow=rollout`);
  // New rows are held back under the mouse; existing rows are updated.
  await row.hover();
  await started(runs, "web-2");
  await page.getByRole("button", { name: "1 new run" }).waitFor();
  expect(await page.locator("tbody tr").count()).toBe(1);
  await runs.signal({ workflow: "rollout", id: "web-1" }, "approve", { payload: { by: "ann" } });
  await row.getByText("done").waitFor();
  await page.getByRole("button", { name: "1 new run" }).click();
  await expect.poll(() => page.locator("tbody tr").count()).toBe(2);
  await page.mouse.move(0, 0);
  await page.locator("h1").click();
  await started(runs, "web-3");
  await page.getByRole("row", { name: /web-3/ }).waitFor();
  expect(troubles).toEqual([]);
});

test("finds runs by status, part of the name, author and key, and links problems of the overview", async (context) => {
  const { page, troubles } = await open(context);
  const { url, runs } = await stageRuns(harness);
  await runs.start(rollout, { name: "web" }, { id: "web-1", by: "ann", key: "team-a/web" });
  await runs.start(rollout, { name: "web", fails: true }, { id: "db-1", by: "bob" });
  await inStatus(runs, "web-1", "waiting");
  await runs.signal({ workflow: "rollout", id: "db-1" }, "approve", { payload: { by: "ann" } });
  await inStatus(runs, "db-1", "failed");
  const rows = async () => (await page.locator("tbody th a").allTextContents()).toSorted();
  const line = () => page.locator(".cli code").last().textContent();

  await page.goto(`${url}/workflows?workflow=rollout`);
  await expect.poll(rows).toEqual(["db-1", "web-1"]);
  await page.getByRole("link", { name: /^Waiting/ }).click();
  await expect.poll(rows).toEqual(["web-1"]);
  expect(new URL(page.url()).searchParams.get("status")).toBe("waiting");
  expect(await line()).toBe("konverge run list rollout --status waiting");
  await page.getByRole("link", { name: /^All/ }).click();
  await page.getByRole("textbox", { name: "Search" }).fill("TEAM-a");
  await expect.poll(rows).toEqual(["web-1"]);
  expect(await line()).toBe("konverge run list rollout --search TEAM-a");
  await page.getByRole("textbox", { name: "Search" }).fill("no-such-run");
  await page.getByText("No matching runs").waitFor();
  await page.goto(`${url}/workflows?by=bob`);
  await expect.poll(rows).toEqual(["db-1"]);
  await page.getByText("by bob", { exact: true }).waitFor();
  await page.getByRole("link", { name: "db-1" }).click();
  await page.getByText("by bob", { exact: true }).waitFor();

  await page.goto(url);
  const problems = page.getByRole("list", { name: "Problems" });
  await problems.getByRole("link", { name: /rollout: db-1 failed/ }).click();
  await page.getByRole("heading", { name: "db-1" }).waitFor();
  await page.goto(url);
  await page.getByRole("row", { name: /rollout version 3/ }).waitFor();
  await page.locator('td[data-label="Waiting"] a[href*="workflow=rollout"]').click();
  await expect.poll(rows).toEqual(["web-1"]);
  await page.goto(`${url}/runs/rollout/default/web-1`);
  await page.getByRole("link", { name: "team-a/web" }).click();
  await expect.poll(rows).toEqual(["web-1"]);
  expect(troubles).toEqual([]);
});

test("starts a run from the list and reports invalid JSON", async (context) => {
  const { page, troubles } = await open(context);
  const { url, runs } = await stageRuns(harness);
  await started(runs, "web-1");
  await page.goto(`${url}/workflows?workflow=rollout`);
  await page.getByRole("row", { name: /web-1 rollout/ }).waitFor();
  await page.getByRole("button", { name: "Start run" }).click();
  const dialog = page.getByRole("dialog", { name: "Start run" });
  expect(await dialog.getByRole("combobox", { name: "Workflow" }).inputValue()).toBe("rollout");
  const input = dialog.getByRole("textbox", { name: "Input" });
  await input.fill("{name: 'new'}");
  await dialog.getByRole("textbox", { name: "Key" }).fill("team-a/new");
  const by = dialog.getByLabel("Your name");
  await by.fill("ann");
  await by.press("Enter");
  await dialog.getByText("Invalid JSON in input").waitFor();
  await input.fill(`{"name":"new"}`);
  expect(await dialog.locator(".cli code").textContent()).toBe(
    `konverge run start rollout --input '{"name":"new"}' --key team-a/new`,
  );
  expect(await findBarriers(page)).toEqual([]);
  await by.press("Enter");
  await expect.poll(() => sentenceOf(page).textContent()).toMatch(/^waiting for signal approve/);
  const [run] = (await runs.list("rollout")).runs;
  expect(run).toMatchObject({ key: "team-a/new", by: "ann" });
  expect(page.url()).toBe(`${url}/runs/rollout/default/${run?.id}`);
  await page.getByText("by ann", { exact: true }).waitFor();
  expect(troubles).toEqual([]);
});

test("pauses and resumes one run, and all runs that match the filters, after a preview", async (context) => {
  const { page, troubles } = await open(context);
  const { url, runs } = await stageRuns(harness);
  for (const id of ["web-1", "web-2", "db-1"]) await started(runs, id);
  const statusOf = async (id: string) => (await runs.peek({ workflow: "rollout", id }))?.status;
  await page.goto(`${url}/workflows?workflow=rollout&search=web`);
  await page.getByRole("row", { name: /web-1 rollout/ }).waitFor();
  await page.getByRole("button", { name: "Act on all matching runs" }).click();
  const dialog = page.getByRole("dialog", { name: "Act on all matching runs" });
  await dialog.getByText("2 runs match").waitFor();
  expect(await dialog.locator(".cli code").textContent()).toBe(
    "konverge run pause --workflow rollout --search web --reason WHY",
  );
  expect(await findBarriers(page)).toEqual([]);
  await dialog.getByLabel("Your name").fill("ann");
  await dialog.getByRole("textbox", { name: "Reason" }).fill("freeze");
  await dialog.getByRole("textbox", { name: "Reason" }).press("Enter");
  await expect.poll(() => statusOf("web-1")).toBe("paused");
  await expect.poll(() => statusOf("web-2")).toBe("paused");
  expect(await statusOf("db-1")).toBe("waiting");
  await page.getByRole("link", { name: "web-1" }).click();
  await expect.poll(() => sentenceOf(page).textContent()).toMatch(/^paused by ann: freeze/);
  await page.getByRole("button", { name: "Resume run" }).click();
  const resume = page.getByRole("dialog", { name: "Resume run" });
  await resume.getByRole("textbox", { name: "Reason" }).fill("thawed");
  await resume.getByRole("textbox", { name: "Reason" }).press("Enter");
  await expect.poll(() => statusOf("web-1")).toBe("waiting");
  expect(troubles).toEqual([]);
});

test("finds objects and runs by search, and shows actions on a run in the live tail", async (context) => {
  const { page, troubles } = await open(context);
  const { url, runs, queue } = await stageRuns(harness);
  await started(runs, "blue-run");
  await queue.request(keyOf("blue-object"), { kind: "cli", by: "test" });
  await page.goto(`${url}/live`);
  await page.getByText("connected", { exact: true }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("blue");
  await page.getByRole("option", { name: "demo/blue-object" }).waitFor();
  await page.getByRole("option", { name: "blue-run run of rollout · waiting" }).waitFor();
  await page.keyboard.press("Control+A");
  await page.keyboard.type("blue-run");
  await page.getByRole("option", { name: "demo/blue-object" }).waitFor({ state: "detached" });
  // The newer run is the child.
  await page.getByRole("option", { name: "blue-run.smoke run of smoke · done" }).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "blue-run" }).waitFor();
  expect(new URL(page.url()).pathname).toBe("/runs/rollout/default/blue-run");

  await page.goto(`${url}/live`);
  await page.getByText("connected", { exact: true }).waitFor();
  const body = JSON.stringify({ by: "ann", reason: "the wrong one" });
  const headers = { "content-type": "application/json" };
  const path = `${url}/v1/runs/rollout%2Fdefault%2Fblue-run/cancel`;
  expect((await fetch(path, { method: "POST", headers, body })).status).toBe(200);
  await page.getByText("run.cancel").waitFor();
  await page.getByRole("link", { name: "blue-run" }).click();
  await expect.poll(() => sentenceOf(page).textContent()).toMatch(/^cancelled after /);
  expect(troubles).toEqual([]);
});

test("renders recorded values as text, and shows no action buttons to viewers", async (context) => {
  const { page, troubles } = await open(context);
  const { url, runs, access } = await stageRuns(harness, {
    env: { KONVERGE_TOKEN: "0123456789abcdef".repeat(2) },
  });
  const canary = `<img src=x onerror="window.hacked='yes'"><script>window.hacked='yes'<\u002fscript>`;
  const id = `team/"><svg-onload="window.hacked='yes'">`;
  await started(runs, id, { name: canary });
  await runs.cancel({ workflow: "rollout", id }, { by: canary, reason: canary });
  await inStatus(runs, id, "cancelled");
  await started(runs, "waits", { name: canary });
  const viewer = await access.tokens.create(
    { name: "viewer-1", role: "viewer", scope: {} },
    "test",
  );
  await page.goto(`${url}/runs/rollout/default/waits`);
  await page.getByLabel("Token").fill(viewer.token);
  await page.getByLabel("Token").press("Enter");
  await sentenceOf(page).getByText("waiting").waitFor();
  expect(await page.getByRole("button", { name: /Send signal|Cancel run/ }).count()).toBe(0);
  for (const view of ["/workflows", `/runs/rollout/default/${encodeURIComponent(id)}`]) {
    await page.goto(`${url}${view}`);
    await page.locator("main h1").waitFor();
    await page.locator(".skeleton").waitFor({ state: "detached" });
    for (const summary of await page.locator("main summary").all()) await summary.click();
    await page.getByText("<img src=x").first().waitFor();
    expect(await page.evaluate("window.hacked"), view).toBeUndefined();
    expect(await page.locator("main img, main script, main [onload]").count(), view).toBe(0);
  }
  expect(troubles).toEqual([]);
});

const LOOKS = [
  ["desktop, light", { ...DESKTOP, colorScheme: "light" }],
  ["mobile, dark", { ...MOBILE, colorScheme: "dark" }],
  ["320 px, forced colors", { viewport: { width: 320, height: 640 }, forcedColors: "active" }],
] as const;
// One of them in a short run.
test.for(partsOfRun(LOOKS, LOOKS.length))(
  "%s: pages of runs fit the window, send few requests, and have no serious axe violations",
  async ([, options], context) => {
    const { page, troubles, requests, visit } = await open(context, options);
    const { url, runs } = await stageRuns(harness);
    await started(runs, "waits");
    await started(runs, "a-rather-long-name-of-a-run-without-any-place-to-break-it-in-two");
    await runs.start(rollout, { name: "web", fails: true }, { id: "fails" });
    await runs.signal({ workflow: "rollout", id: "fails" }, "approve", { payload: { by: "ann" } });
    await inStatus(runs, "fails", "failed");
    await runs.start({ name: "rollout", version: 9 }, { name: "web" }, { id: "blocked" });
    await inStatus(runs, "blocked", "blocked");
    for (const view of [
      "/workflows",
      ...["waits", "fails", "blocked"].map((id) => `/runs/rollout/default/${id}`),
    ]) {
      await visit(`${url}${view}`);
      await page.locator("main h1").waitFor();
      await page.locator(".skeleton").waitFor({ state: "detached" });
      // The page with its script and style; the run, its next change and its log.
      expect(requests.length, `${view}: ${requests.join(" ")}`).toBeLessThanOrEqual(6);
      for (const summary of await page.locator("main summary").all()) await summary.click();
      expect(await findBarriers(page), view).toEqual([]);
      const width = await page.evaluate("document.documentElement.scrollWidth");
      expect(width, `${view} is not wider than the window`).toBeLessThanOrEqual(
        options.viewport.width,
      );
    }
    expect(troubles).toEqual([]);
  },
);
