import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { tmpdir } from "node:os";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DESKTOP, findBarriers, findChromium, MOBILE, useChromium } from "./chromium.ts";
import { startDemoStage, type DemoStage, type LoggedRequest } from "./demo-stage.ts";

const open = useChromium();
let demo: DemoStage;

beforeAll(async () => {
  // Nobody would look at it.
  if (findChromium() === undefined) return;
  demo = await startDemoStage();
});
afterAll(async () => {
  await demo?.stop();
});

interface Race {
  readonly startedAt: string;
  readonly conflicts: number;
}

/** What the page says of the races for the status of its own object, an entry per attempt, oldest first. */
async function racesOn(page: Page, target: string): Promise<Race[]> {
  const races = await page.locator("details.attempt").evaluateAll(
    (items, wanted) =>
      items.map((item) => ({
        startedAt: item.querySelector("summary time")?.getAttribute("datetime") ?? "",
        conflicts: [...item.querySelectorAll("article.write")]
          .filter((write) => write.querySelector("header")?.textContent?.includes(wanted) === true)
          .reduce((sum, write) => sum + write.querySelectorAll("[data-conflict]").length, 0),
      })),
    target,
  );
  return races.toReversed();
}

test("for the demo's most fought object each conflict on the page is one in the API server's log", async (context) => {
  const { page, troubles } = await open(context);
  await page.goto(demo.mostFought.href);
  await page.getByRole("heading", { name: "Attempts" }).waitFor();
  // Folded attempts have no conflicts, and are attempts all the same.
  const folded = page.getByRole("button", { name: /found nothing to do/ });
  while ((await folded.count()) > 0) await folded.first().click();
  const [, , , , namespace = "", name = ""] = demo.mostFought.pathname.split("/");
  const races = await racesOn(page, `nodepools.demo.konverge.dev ${namespace}/${name}`);
  const onPage = races.reduce((sum, { conflicts }) => sum + conflicts, 0);
  expect(onPage, "the demo's workers lose races").toBeGreaterThan(0);

  const isOurs = ({ userAgent, objectRef, responseStatus }: LoggedRequest) =>
    userAgent.startsWith("konverge-worker") &&
    objectRef?.resource === "nodepools" &&
    objectRef.name === name &&
    objectRef.namespace === namespace &&
    objectRef.subresource === "status" &&
    responseStatus?.code === 409;
  const refused = demo.readLog().filter(isOurs);
  // An object has one attempt at a time, so each refusal belongs to the last one that began before it.
  const logged = races.map(({ startedAt }, index) => ({
    startedAt,
    conflicts: refused.filter(
      ({ stageTimestamp }) =>
        Date.parse(stageTimestamp) >= Date.parse(startedAt) &&
        Date.parse(stageTimestamp) < Date.parse(races[index + 1]?.startedAt ?? "9999-12-31"),
    ).length,
  }));
  expect(races).toEqual(logged);
  expect(onPage).toBe(refused.length);

  // Who won is told where we read again, and has written: the log has no field managers, but it has the writer that is none of ours.
  const winners = await page
    .locator("[data-conflict] .strong:not(.num)")
    .evaluateAll((found) => found.map((element) => element.textContent));
  const outside = demo
    .readLog()
    .filter(
      ({ userAgent, objectRef, responseStatus }) =>
        userAgent === "outside-writer" && objectRef?.name === name && responseStatus?.code === 200,
    );
  expect(outside.length).toBeGreaterThanOrEqual(
    winners.filter((winner) => winner === "outside-writer").length,
  );
  await page.goto(new URL("/contention", demo.apiUrl).href);
  await page.getByText("outside-writer").first().waitFor();
  expect(troubles).toEqual([]);
});

const VIEWS = [
  "/",
  "/attempts",
  "/workflows",
  "/contention",
  "/live",
  "/objects",
  "/dead-letters",
  "/guards",
  "/workers",
  "/controllers/node-pool",
];

test.for([
  ["desktop, light", { ...DESKTOP, colorScheme: "light" }],
  ["mobile, dark", { ...MOBILE, colorScheme: "dark" }],
  ["320 px, forced colours", { viewport: { width: 320, height: 640 }, forcedColors: "active" }],
] as const)(
  "%s: each view fits, asks little, and axe finds nothing serious",
  async ([, options], context) => {
    const { page, troubles, requests } = await open(context, options);
    for (const view of [...VIEWS, demo.mostFought.pathname]) {
      await page.goto(new URL(view, demo.apiUrl).href);
      await page.locator("main h1").waitFor();
      await page.locator(".skeleton").waitFor({ state: "detached" });
      if (view.startsWith("/controllers/")) await page.locator("canvas").nth(1).waitFor();
      if (view.startsWith("/objects/"))
        await page.locator("details.attempt summary").first().click();
      expect(requests.length, `${view}: ${requests.join(" ")}`).toBeLessThanOrEqual(5);
      expect(await findBarriers(page), view).toEqual([]);
      const width = await page.evaluate("document.documentElement.scrollWidth");
      expect(width, `${view} is not wider than the window`).toBeLessThanOrEqual(
        options.viewport.width,
      );
    }
    expect(troubles).toEqual([]);
  },
);

test("a chart has a summary, and says the same as a table", async (context) => {
  const { page, troubles } = await open(context);
  await page.goto(new URL("/", demo.apiUrl).href);
  await page.getByRole("link", { name: "node-pool", exact: true }).click();
  const chart = page.getByRole("img", { name: /^Attempts per minute: [\d,]+ in all/ });
  const [, total = ""] =
    /: ([\d,]+) in all/.exec((await chart.getAttribute("aria-label")) ?? "") ?? [];
  await chart.locator("canvas").waitFor();
  await page.getByText("As a table").click();
  const attempts = await page.locator(".as-table tbody td:nth-child(2)").allTextContents();
  const sum = attempts.reduce((so, text) => so + Number(text.replaceAll(",", "")), 0);
  expect(sum).toBeGreaterThan(0);
  expect(sum.toLocaleString("en-US")).toBe(total);
  expect(troubles).toEqual([]);
});

/** With KONVERGE_TEST_SCREENSHOTS=1 into docs/images, else where nobody looks; the size is the same in both. */
const images =
  process.env["KONVERGE_TEST_SCREENSHOTS"] === "1"
    ? "docs/images"
    : join(tmpdir(), "konverge-images");

test.for([
  ["dashboard-overview", "light", "/"],
  ["dashboard-object", "light", "object"],
  ["dashboard-object-dark", "dark", "object"],
  ["dashboard-contention", "light", "/contention"],
] as const)(
  "the picture %s of the docs shows what there is",
  async ([name, colorScheme, view], context) => {
    const { page } = await open(context, { viewport: { width: 1280, height: 800 }, colorScheme });
    const isObject = view === "object";
    await page.goto(isObject ? demo.mostFought.href : new URL(view, demo.apiUrl).href);
    await page.locator("main h1").waitFor();
    await page.locator(".skeleton").waitFor({ state: "detached" });
    if (isObject) {
      const fought = page.locator("details.attempt summary", { hasText: "conflict" }).first();
      await fought.click();
      await page.locator("#attempts").evaluate((heading) => heading.scrollIntoView());
      await page.evaluate("window.scrollBy(0, -72)");
    }
    mkdirSync(images, { recursive: true });
    const picture = await page.screenshot({ path: join(images, `${name}.png`) });
    // Width and height stand in the header of a PNG.
    expect([picture.readUInt32BE(16), picture.readUInt32BE(20)]).toEqual([1280, 800]);
  },
);
