import { createGuard } from "@konverge/guard";
import { expect, onTestFinished, test } from "vitest";
import { useQueues } from "../../integration/queue/queue-harness.ts";
import { until } from "../../support/until.ts";
import { findBarriers, useChromium } from "./chromium.ts";
import { startOwnApi, startProxy } from "./own-api.ts";

const harness = useQueues();
const open = useChromium();

async function failingGuard() {
  const guard = await createGuard({
    redis: harness.target,
    prefix: harness.prefix,
    cluster: "default",
    workerId: "w-1",
    limits: { ratePerSecond: 500, breaker: { openMs: 100, maxOpenMs: 100 } },
  });
  onTestFinished(() => guard.close());
  const fail = async () => {
    const call = { verb: "get", resource: "nodepools.", priority: "event" } as const;
    const permit = await guard.admit(call).catch(() => undefined);
    permit?.settle({ kind: "timeout" });
  };
  return { guard, fail };
}

test("shows an outage with start, cause, effect and next step before the breaker opens", async (context) => {
  const { page, troubles } = await open(context);
  const { url } = await startOwnApi(harness);
  const { guard, fail } = await failingGuard();
  for (let calls = 0; calls < 3; calls++) await fail();
  await page.goto(url);
  const problem = page.getByRole("list", { name: "Problems" }).getByRole("listitem").first();
  await problem.getByText("API server of default is failing").waitFor();
  expect(guard.breaker.mode).toBe("closed");
  const text = await problem.innerText();
  expect(text).toMatch(/began (now|\d)/);
  expect(text).toContain("timeout");
  expect(text).toContain("none lost");
  expect(text).toContain("Check the API server");
  expect(await findBarriers(page)).toEqual([]);

  await until("the breaker has opened and probes failed", async () => {
    await fail();
    return Number(await harness.redis.llen(`${harness.prefix}:{default}/guard/transitions`)) > 30;
  });
  await page.goto(new URL("guards", url).href);
  const history = page.getByRole("table", { name: "Breaker history" });
  const row = history.getByRole("row").nth(1);
  await row.getByText("continues").waitFor();
  expect(await row.innerText()).toContain("consecutive failures");
  await row.locator("summary").click();
  expect(await row.innerText()).toContain("open: probe failed");
  expect(await history.getByRole("row").count(), "one row until the breaker closes").toBe(2);
  expect(await findBarriers(page)).toEqual([]);
  expect(troubles).toEqual([]);
});

test("a page whose API hangs turns amber, then red, and its summary becomes unknown", async (context) => {
  const { page } = await open(context);
  const { url } = await startOwnApi(harness);
  const hang = { now: false };
  const proxied = await startProxy(url, "/");
  await page.route("**/v1/overview*", async (route) => {
    // A request that is never answered.
    if (!hang.now) await route.continue();
  });
  await page.clock.install();
  await page.goto(proxied);
  await page.getByRole("heading", { name: "No problems" }).waitFor();
  const age = page.locator(".as-of");
  await age.getByText("updated").waitFor();
  hang.now = true;
  await page.clock.runFor(18_000);
  await page.locator(".as-of.late").waitFor();
  await page.clock.runFor(20_000);
  await page.locator(".as-of.stale").getByText("not updated since").waitFor();
  await page.getByRole("heading", { name: "Unknown: no update since" }).waitFor();
  expect(await findBarriers(page)).toEqual([]);
  hang.now = false;
  await page.clock.runFor(20_000);
  await page.getByRole("heading", { name: "No problems" }).waitFor();
});
