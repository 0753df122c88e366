import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findBarriers, useChromium } from "./chromium.ts";
import { startDemoStage, type DemoStage, type LoggedRequest } from "./demo-stage.ts";
import { partsOfRun } from "../../support/test-run.ts";

const open = useChromium();
let demo: DemoStage;
/** The page of the pool with most conflicts of its controller. */
let contendedPage: URL;

/** Returns true for a write of a pool's status by its controller that the API server rejected. */
function isRejected({ userAgent, objectRef, responseStatus }: LoggedRequest): boolean {
  return (
    userAgent.startsWith("konverge-worker") &&
    objectRef?.resource === "nodepools" &&
    objectRef.subresource === "status" &&
    responseStatus?.code === 409
  );
}

/** The demo prints the pool with most conflicts of any controller, which may have none of its own controller. */
function findContendedPage(stage: DemoStage): URL {
  const conflicts = new Map<string, number>();
  for (const { objectRef } of stage.readLog().filter(isRejected)) {
    const path = `${objectRef?.namespace}/${objectRef?.name}`;
    conflicts.set(path, (conflicts.get(path) ?? 0) + 1);
  }
  const [most] = [...conflicts].toSorted(([, a], [, b]) => b - a);
  if (most === undefined) throw new Error("the demo's load caused no conflict");
  return new URL(`/objects/default/node-pool/${most[0]}`, stage.apiUrl);
}

beforeAll(async () => {
  demo = await startDemoStage();
  contendedPage = findContendedPage(demo);
});
afterAll(async () => {
  await demo?.stop();
});

test("P3: the lost-update check finds the updates that a blind writer overwrites", () => {
  const lost = demo.acts.reduce((sum, { lostUpdates }) => sum + lostUpdates, 0);
  expect(lost).toBeGreaterThan(0);
});

interface AttemptConflicts {
  readonly startedAt: string;
  readonly conflicts: number;
}

/** Returns the page's conflicts on the status of its own object, an entry per attempt, oldest first. */
async function conflictsOn(page: Page, target: string): Promise<AttemptConflicts[]> {
  const entries = await page.locator("details.attempt").evaluateAll(
    (items, wanted) =>
      items.map((item) => ({
        startedAt: item.querySelector("summary time")?.getAttribute("datetime") ?? "",
        conflicts: [...item.querySelectorAll("article.write")]
          .filter((write) => write.querySelector("header")?.textContent?.includes(wanted) === true)
          .reduce((sum, write) => sum + write.querySelectorAll("[data-conflict]").length, 0),
      })),
    target,
  );
  return entries.toReversed();
}

test("shows the same conflicts as the API server's log for the demo's most contended object", async (context) => {
  const { page, troubles } = await open(context);
  await page.goto(contendedPage.href);
  await page.getByRole("heading", { name: "Attempts" }).waitFor();
  // Folded attempts count as attempts.
  const folded = page.getByRole("button", { name: /without changes|same error since/ });
  while ((await folded.count()) > 0) await folded.first().click();
  const [, , , , namespace = "", name = ""] = contendedPage.pathname.split("/");
  const entries = await conflictsOn(page, `nodepools.demo.konverge.dev ${namespace}/${name}`);
  const onPage = entries.reduce((sum, { conflicts }) => sum + conflicts, 0);
  expect(onPage, "the demo's workers have conflicts").toBeGreaterThan(0);

  const rejectedWrites = demo
    .readLog()
    .filter(
      (request) =>
        isRejected(request) &&
        request.objectRef?.name === name &&
        request.objectRef.namespace === namespace,
    );
  // An object has one attempt at a time, so each conflict belongs to the last attempt started before it.
  const logged = entries.map(({ startedAt }, index) => ({
    startedAt,
    conflicts: rejectedWrites.filter(
      ({ stageTimestamp }) =>
        Date.parse(stageTimestamp) >= Date.parse(startedAt) &&
        Date.parse(stageTimestamp) < Date.parse(entries[index + 1]?.startedAt ?? "9999-12-31"),
    ).length,
  }));
  expect(entries).toEqual(logged);
  expect(onPage).toBe(rejectedWrites.length);

  // The log has no field managers, but it identifies the external writer.
  const competingWriters = await page
    .locator("[data-conflict] .strong:not(.num)")
    .evaluateAll((found) => found.map((element) => element.textContent));
  const outside = demo
    .readLog()
    .filter(
      ({ userAgent, objectRef, responseStatus }) =>
        userAgent === "outside-writer" && objectRef?.name === name && responseStatus?.code === 200,
    );
  expect(outside.length).toBeGreaterThanOrEqual(
    competingWriters.filter((writer) => writer === "outside-writer").length,
  );
  await page.goto(new URL("/contention", demo.apiUrl).href);
  await page
    .getByRole("link", { name: `${namespace}/${name}`, exact: true })
    .first()
    .waitFor();
  expect(troubles).toEqual([]);
});

const VIEWS = [
  "/",
  "/attempts",
  "/workflows",
  "/schedules",
  "/contention",
  "/live",
  "/objects",
  "/dead-letters",
  "/approvals",
  "/drift",
  "/guards",
  "/workers",
  "/audit",
  "/docs",
  "/docs/outages",
  "/hints/already_exists",
  "/controllers/node-pool",
];

test("320 px, forced colors: each view fits the window, sends few requests, and has no serious axe violations", async (context) => {
  // The incident's test has the other looks.
  const options = { viewport: { width: 320, height: 640 }, forcedColors: "active" } as const;
  const { page, troubles, requests, visit } = await open(context, options);
  const views = [...VIEWS, contendedPage.pathname];
  // The check takes seconds on a page with many rows, so a short run checks every third one.
  const checked = partsOfRun(views, 3);
  for (const view of views) {
    await visit(new URL(view, demo.apiUrl).href);
    await page.locator("main h1").waitFor();
    await page.locator(".skeleton").waitFor({ state: "detached" });
    if (view.startsWith("/controllers/")) await page.locator("canvas").nth(1).waitFor();
    if (view.startsWith("/objects/")) await page.locator("details.attempt summary").first().click();
    // An object also has its explanation.
    const most = view.startsWith("/objects/") ? 6 : 5;
    expect(requests.length, `${view}: ${requests.join(" ")}`).toBeLessThanOrEqual(most);
    if (checked.includes(view)) expect(await findBarriers(page), view).toEqual([]);
    const width = await page.evaluate("document.documentElement.scrollWidth");
    expect(width, `${view} is not wider than the window`).toBeLessThanOrEqual(
      options.viewport.width,
    );
  }
  expect(troubles).toEqual([]);
});

test("shows a chart with a summary and the same data as a table", async (context) => {
  const { page, troubles } = await open(context);
  await page.goto(new URL("/", demo.apiUrl).href);
  await page.getByRole("link", { name: "node-pool", exact: true }).click();
  const chart = page.getByRole("img", { name: /^Attempts per minute: [\d,]+ in total/ });
  const [, total = ""] =
    /: ([\d,]+) in total/.exec((await chart.getAttribute("aria-label")) ?? "") ?? [];
  await chart.locator("canvas").waitFor();
  await page.getByText("Show as table").click();
  const attempts = await page.locator(".as-table tbody td:nth-child(2)").allTextContents();
  const sum = attempts.reduce((partial, text) => partial + Number(text.replaceAll(",", "")), 0);
  expect(sum).toBeGreaterThan(0);
  expect(sum.toLocaleString("en-US")).toBe(total);
  expect(troubles).toEqual([]);
});

test("the demo exits with 1 after lost updates", async () => {
  expect(await demo.stop()).toBe(1);
});
