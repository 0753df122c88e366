import { afterAll, beforeAll, expect, test } from "vitest";
import { DESKTOP, findBarriers, MOBILE, useChromium } from "./chromium.ts";
import { startRolloutStage, type RolloutStage } from "./demo-stage.ts";

const open = useChromium();
let demo: RolloutStage;

beforeAll(async () => {
  demo = await startRolloutStage();
});
afterAll(async () => {
  await demo?.stop();
});

test("a rollout over two clusters changes each cluster once, although its worker is killed during a write", () => {
  const { run, killed, timeline, checks } = demo;
  expect(checks.filter(({ ok }) => !ok)).toEqual([]);
  expect(checks.length).toBeGreaterThanOrEqual(9);
  expect(run).toMatchObject({ id: "fleet-rollout/east/web-2", status: "done" });
  const upgrade = timeline.find(({ step }) => step === "upgrade east");
  expect(upgrade?.workers[0]).toBe(killed);
  expect(upgrade?.workers).toHaveLength(2);
  const ofCluster = (cluster: string) => [
    `look at ${cluster}`,
    `upgrade ${cluster}`,
    `${cluster} is ready`,
    `soak ${cluster}`,
    `check ${cluster}`,
  ];
  const steps = [...ofCluster("east"), "approve west", ...ofCluster("west")];
  expect(run.steps.map(({ name }) => name)).toEqual(steps);
});

test("shows the killed worker of the demo's rollout, with links to its cluster", async (context) => {
  const { page, troubles } = await open(context);
  await page.goto(demo.page.href);
  await page.getByText("done", { exact: true }).waitFor();
  const steps = await page.locator(".line-row .line-name .status").allTextContents();
  expect(steps).toEqual(
    ["east", "west"].flatMap((cluster) => [
      ...(cluster === "west" ? ["approve west"] : []),
      `look at ${cluster}`,
      `upgrade ${cluster}`,
      `${cluster} is ready`,
      `soak ${cluster}`,
      `check ${cluster}`,
    ]),
  );
  const lost = page.getByRole("img", { name: /^worker lost/ });
  expect(await lost.count()).toBe(1);
  const row = page.locator(".line-row", { has: lost });
  expect(await row.locator(".status").textContent()).toBe("upgrade east");
  await page.getByRole("link", { name: "Workflows" }).click();
  await page.getByRole("link", { name: "web-2" }).waitFor();
  await page.getByRole("link", { name: "Overview" }).click();
  await page.getByRole("heading", { name: "No problems: 1 workflow on 1 worker." }).waitFor();
  expect(troubles).toEqual([]);
});

test.for([
  ["light", { ...DESKTOP, colorScheme: "light" }],
  ["dark, on a phone", { ...MOBILE, colorScheme: "dark" }],
] as const)("%s: the demo's run has no serious axe violations", async ([, options], context) => {
  const { page } = await open(context, options);
  await page.goto(demo.page.href);
  await page.locator(".line-row").first().waitFor();
  expect(await findBarriers(page)).toEqual([]);
});

test("the demo exits with 0 after a rollout that passed its checks", async () => {
  expect(await demo.stop()).toBe(0);
});
