import { expect, test } from "vitest";
import { keyOf, useQueues } from "../../integration/queue/queue-harness.ts";
import { DESKTOP, findBarriers, MOBILE, useChromium } from "./chromium.ts";
import { startOwnApi } from "./own-api.ts";

const open = useChromium();
const harness = useQueues();
const BY_TEST = { kind: "http", by: "test", reason: "a test" } as const;

test.for([
  ["desktop, light", { ...DESKTOP, colorScheme: "light" }],
  ["mobile, dark", { ...MOBILE, colorScheme: "dark" }],
] as const)(
  "%s: the pages of raw jobs have no serious axe violations",
  async ([, options], context) => {
    const { page, troubles } = await open(context, options);
    const { url, queue } = await startOwnApi(harness);
    await queue.request(keyOf("blue"), BY_TEST);
    await page.goto(`${url}/jobs`);
    await page.locator("#root main").first().waitFor();
    await page.getByRole("button", { name: "Settings" }).waitFor();
    expect(await findBarriers(page), "overview").toEqual([]);
    await page.goto(`${url}/jobs/queue/node-pool`);
    const job = page.locator("#root main a[href*='/queue/node-pool/']").first();
    await job.waitFor();
    expect(await findBarriers(page), "queue").toEqual([]);
    await job.click();
    await page.getByRole("link", { name: "History" }).first().waitFor();
    expect(await findBarriers(page), "job").toEqual([]);
    expect(troubles).toEqual([]);
  },
);
