import { defineSchedule, defineWorkflow } from "@konverge/workflow";
import { expect, test } from "vitest";
import { useQueues } from "../../integration/queue/queue-harness.ts";
import { until } from "../../support/until.ts";
import { DESKTOP, findBarriers, MOBILE, useChromium } from "./chromium.ts";
import { sentenceOf, stageRuns } from "./run-stage.ts";

const harness = useQueues();
const open = useChromium();
const backup = defineWorkflow("backup", { version: 1 }, async (w) => {
  await w.signal("go");
});
/** Not due during the test. */
const yearly = defineSchedule("yearly", {
  cron: "0 3 1 1 *",
  timeZone: "UTC",
  workflow: backup,
  input: null,
});

test.for([
  ["desktop, light", { ...DESKTOP, colorScheme: "light" }],
  ["mobile, dark", { ...MOBILE, colorScheme: "dark" }],
] as const)(
  "%s: lists schedules, pauses, resumes and triggers one",
  async ([, options], context) => {
    const { page, troubles } = await open(context, options);
    const { url, runs } = await stageRuns(harness, { more: [backup] });
    await page.goto(`${url}/schedules`);
    await page.getByText("No schedules yet").waitFor();
    runs.schedule([yearly]);
    await until("the schedule is known", async () => (await runs.schedules.list()).length > 0);
    const row = page.getByRole("row", { name: /^yearly/ });
    await row.waitFor();
    expect(await row.textContent()).toMatch(/backup.*cron 0 3 1 1 \* UTC.*none/);

    const act = async (label: string) => {
      await row.getByRole("button", { name: label }).click();
      const dialog = page.getByRole("dialog", { name: label });
      await dialog.getByLabel("Your name").fill("ann");
      const reason = dialog.getByRole("textbox", { name: "Reason" });
      await reason.fill("disk full");
      await reason.press("Enter");
      await dialog.waitFor({ state: "detached" });
    };
    await act("Pause");
    await row.getByText(/by ann .*: disk full/).waitFor();
    expect(await findBarriers(page)).toEqual([]);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(
      options.viewport.width,
    );
    await act("Resume");
    await row.getByRole("button", { name: "Pause" }).waitFor();
    await page.getByRole("link", { name: "yearly" }).click();
    await page.getByRole("heading", { name: "Next times" }).waitFor();
    await page.getByText("No runs yet").waitFor();
    expect(await page.locator(".next-times > li").count()).toBe(5);
    await page.getByRole("button", { name: "Backfill" }).click();
    await page.getByText("0 times without a run").waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await page.goBack();
    await act("Trigger now");
    await expect.poll(() => sentenceOf(page).textContent()).toMatch(/^waiting for signal go/);
    const { runs: list } = await runs.list("backup");
    expect(list).toHaveLength(1);
    expect(troubles).toEqual([]);
  },
);
