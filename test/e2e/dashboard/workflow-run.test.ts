import { createControllerRegistry } from "@konverge/queue";
import { TerminalError } from "@konverge/core";
import { defineWorkflow, ready } from "@konverge/workflow";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { startEmbeddedServer } from "../../integration/kube/embedded-server.ts";
import { installWidgets } from "../../integration/kube/kube-servers.ts";
import { useQueues } from "../../integration/queue/queue-harness.ts";
import { findBarriers, useChromium } from "./chromium.ts";
import { inStatus, sentenceOf, stageRuns, started } from "./run-stage.ts";

const harness = useQueues();
const open = useChromium();

/** The body of the step `glue`. */
let mending: () => Promise<void>;
const nap = defineWorkflow("nap", { version: 1 }, (w) => w.sleep("night", "8h"));
const mend = defineWorkflow("mend", { version: 1 }, async (w) => {
  await w.step("look", () => "cracked");
  await w.step("glue", () => mending());
  await w.child("dry", nap, null);
});

const long = defineWorkflow("long", { version: 1 }, async (w) => {
  for (let step = 0; step < 500; step++) await w.step(`link ${step}`, () => step);
  await w.signal("go");
});

const positive = {
  parse(value: unknown): { readonly replicas: number } {
    const { replicas } = (value ?? {}) as { readonly replicas?: unknown };
    if (typeof replicas !== "number" || replicas < 1) throw new Error("replicas must be >= 1");
    return { replicas };
  },
};
const scaled = defineWorkflow("scaled", { version: 1 }, async (w) => {
  const { replicas } = await w.handle("scale", positive, (wanted) => wanted);
  await w.signal("go");
  return replicas;
});

const rowsOf = (page: Page) => page.locator(".line-row .line-name .status").allTextContents();

const spill = defineWorkflow("spill", { version: 1 }, async (w) => {
  const undo = () => Promise.reject(new Error("no"));
  await w.step("pour", () => 1, { retry: { attempts: 1 }, undo });
  throw new TerminalError("spilt");
});

test("sends a signal, reports invalid JSON, cancels the run, and shows the authors", async (context) => {
  const { page, troubles } = await open(context);
  const { url, runs } = await stageRuns(harness);
  await started(runs, "web-1");
  await page.goto(`${url}/runs/rollout/default/web-1`);
  await expect
    .poll(() => sentenceOf(page).textContent())
    .toMatch(/^waiting for signal approve, .* so far; times out in 24 h$/);
  expect(await rowsOf(page)).toEqual(["create", "label", "smoke", "approve"]);
  await page.getByText("3 tries").waitFor();

  // By keyboard.
  await page.getByRole("button", { name: "Send signal" }).focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Send signal" });
  const payload = dialog.getByRole("textbox", { name: "Payload" });
  expect(await dialog.getByLabel("Signal", { exact: true }).inputValue()).toBe("approve");
  await payload.fill("{by: ann}");
  expect(await dialog.locator(".cli code").textContent()).toBe(
    `konverge run signal rollout/default/web-1 approve --payload '{by: ann}'`,
  );
  await dialog.getByLabel("Your name").fill("ann");
  await page.keyboard.press("Enter");
  await dialog.getByText("Invalid JSON in payload").waitFor();
  expect(await findBarriers(page)).toEqual([]);
  await payload.fill('{"by": 7}');
  await dialog.getByLabel("Your name").press("Enter");
  await dialog.waitFor({ state: "detached" });
  await page.getByText(/^Refused signal approve, sent by ann/).waitFor();

  await page.getByRole("button", { name: "Send signal" }).click();
  await payload.fill('{"by": "ann"}');
  await dialog.getByLabel("Your name").press("Enter");
  await expect.poll(() => sentenceOf(page).textContent()).toMatch(/^done in /);
  expect(await rowsOf(page)).toEqual(["create", "label", "smoke", "approve", "publish"]);
  await page.getByText("by ann", { exact: true }).waitFor();
  expect(await page.getByRole("button", { name: /Send signal|Cancel run/ }).count()).toBe(0);
  await page.locator(".values").getByText('"by": "ann"').waitFor();

  await started(runs, "web-2");
  await runs.signal({ workflow: "rollout", id: "web-2" }, "aprove", { by: "bob" });
  await page.goto(`${url}/runs/rollout/default/web-2`);
  await page.getByText(/^Unconsumed signal aprove, sent by bob/).waitFor();
  await page.getByRole("button", { name: "Cancel run" }).click();
  const cancel = page.getByRole("dialog", { name: "Cancel run" });
  await cancel.getByText("konverge run cancel rollout/default/web-2").waitFor();
  const why = cancel.getByRole("textbox", { name: "Reason" });
  await why.fill("the wrong pool");
  await why.press("Enter");
  await expect
    .poll(() => sentenceOf(page).textContent())
    .toMatch(/^cancelled after .* by ann: the wrong pool$/);
  expect(await rowsOf(page)).toEqual(["create", "label", "smoke", "approve", "create"]);
  await page.getByRole("heading", { name: "Compensation" }).waitFor();

  await started(runs, "web-3");
  await page.goto(`${url}/runs/rollout/default/web-3`);
  await page.getByRole("button", { name: "Terminate run" }).click();
  const terminate = page.getByRole("dialog", { name: "Terminate run" });
  await terminate.getByText("konverge run terminate rollout/default/web-3").waitFor();
  const cause = terminate.getByRole("textbox", { name: "Reason" });
  await cause.fill("the pool is gone");
  await cause.press("Enter");
  await expect
    .poll(() => sentenceOf(page).textContent())
    .toMatch(/^cancelled after .* terminated by ann: the pool is gone$/);
  await page.getByText("Steps left without compensation: create").waitFor();
  expect(await rowsOf(page)).toEqual(["create", "label", "smoke"]);
  expect(await findBarriers(page)).toEqual([]);
  expect(troubles).toEqual([]);
});

test("retries a failed run from the failed step or as a new run, with links to child and original", async (context) => {
  const { page, troubles } = await open(context);
  const { url, runs } = await stageRuns(harness, { more: [mend, nap] });
  mending = () => Promise.reject(new TerminalError("no glue is left"));
  await runs.start(mend, null, { id: "vase" });
  await page.goto(`${url}/runs/mend/default/vase`);
  await expect.poll(() => sentenceOf(page).textContent()).toMatch(/^failed after /);
  await page.getByText('step_failed step "glue" failed: no glue is left').waitFor();

  const { promise: held, resolve: dry } = Promise.withResolvers<void>();
  mending = () => held;
  await page.getByRole("button", { name: "Retry from the failed step" }).click();
  const dialog = page.getByRole("dialog", { name: "Retry from the failed step" });
  await dialog.getByText("konverge run retry mend/default/vase --from-failed-step").waitFor();
  await dialog.getByLabel("Your name").fill("ann");
  const why = dialog.getByRole("textbox", { name: "Reason" });
  await why.fill("glue was bought");
  await why.press("Enter");
  await page.getByText("by ann: glue was bought").waitFor();
  await page.getByRole("img", { name: /^executing for/ }).waitFor();
  dry();
  await page
    .getByRole("region", { name: "Related runs" })
    .getByRole("link", { name: "dry", exact: true })
    .click();
  await page.getByRole("heading", { name: "vase.dry" }).waitFor();
  expect(await sentenceOf(page).textContent()).toMatch(/^waiting for sleep night/);
  await page.getByRole("link", { name: "vase", exact: true }).click();
  await page.getByRole("heading", { name: "vase", exact: true }).waitFor();

  await runs.cancel({ workflow: "mend", id: "vase" }, { by: "ann", reason: "it is new now" });
  await expect.poll(() => sentenceOf(page).textContent()).toMatch(/^cancelled after /);
  await page.getByRole("button", { name: "Retry as a new run" }).click();
  const again = page
    .getByRole("dialog", { name: "Retry as a new run" })
    .getByRole("textbox", { name: "Reason" });
  await again.fill("it broke again");
  await again.press("Enter");
  await page.getByRole("heading", { name: "vase~2" }).waitFor();
  await page.getByText("by ann: it broke again").waitFor();
  await page.getByRole("link", { name: "vase", exact: true }).waitFor();
  expect(troubles).toEqual([]);
});

test("shows the unmet condition of a wait for an object until it is ready", async (context) => {
  const { page, troubles } = await open(context);
  const { url, runs } = await stageRuns(harness);
  await using server = await startEmbeddedServer();
  const { client } = server;
  const widgets = await installWidgets(client, "dashboard.test.konverge.dev");
  const place = { namespace: "default", name: "web" };
  const metadata = { ...place, finalizers: [] };
  const { apiVersion, kind, ...made } = await client.create(widgets, {
    metadata,
    spec: { size: 1 },
  });
  const { uid = "", resourceVersion = "", generation = 1 } = made.metadata;
  const ref = { apiVersion, kind, ...place, uid, generation, resourceVersion };
  const report = async (status: "True" | "False", message: string) => {
    const conditions = [{ type: "Ready", status, reason: "Tested", message }];
    const body = { status: { observedGeneration: generation, conditions } };
    const how = { unguarded: true, subresource: "status" } as const;
    await client.patch(widgets, place, { type: "merge", body }, how);
  };
  await report("False", "1 of 3 <b>are</b> up");
  const waiting = defineWorkflow("waiting", { version: 1 }, async (w) => {
    await w.waitFor("web is ready", ready(ref), { timeout: "1h" });
  });
  const registry = createControllerRegistry({
    redis: harness.target,
    prefix: harness.prefix,
    cluster: "default",
  });
  await registry.announce([], [waiting]);
  await registry.close();
  const clusters = { home: "default", client: async () => client };
  const worker = runs.work({ workflows: [waiting], clusters });
  const watch = runs.watch({ clusters, ...place, identity: "test" });
  await runs.start(waiting, null, { id: "r" });

  await page.goto(`${url}/runs/waiting/default/r`);
  await expect
    .poll(() => sentenceOf(page).textContent())
    .toMatch(/^waiting for web is ready: .*1 of 3 <b>are<\/b> up, .* so far; /);
  await page.locator(".line-note").getByText("1 of 3 <b>are</b> up").waitFor();
  await report("True", "3 of 3 are up");
  await expect.poll(() => sentenceOf(page).textContent()).toMatch(/^done in /);
  expect(await rowsOf(page)).toEqual(["web is ready"]);
  expect(troubles).toEqual([]);
  await Promise.all([watch.stop(), worker.stop()]);
});

test("shows the errors of failed tries, and where a wait was called", async (context) => {
  const { page, troubles } = await open(context);
  const { url, runs } = await stageRuns(harness);
  await started(runs, "web-1");
  await page.goto(`${url}/runs/rollout/default/web-1`);
  const label = page.locator(".line-row", { hasText: "label" });
  await label.getByText("last error: busy").waitFor();
  await label.locator("summary").click();
  const tries = label.locator(".tries > li");
  expect(await tries.allInnerTexts()).toEqual([
    expect.stringMatching(/^#1\s[^]*Error busy$/),
    expect.stringMatching(/^#2\s[^]*Error busy$/),
  ]);
  const approve = page.locator(".line-row", { hasText: "approve" });
  await approve.locator("summary").click();
  await approve.getByText(/^at .*run-stage\.ts:\d+:\d+\)?$/).waitFor();
  expect(await findBarriers(page)).toEqual([]);
  expect(troubles).toEqual([]);
});

test("warns once about a run that nears a limit", async (context) => {
  const { page, troubles } = await open(context);
  const { url, runs } = await stageRuns(harness, { more: [long] });
  await runs.start(long, null, { id: "chain" });
  await page.goto(`${url}/runs/long/default/chain`);
  await page.locator(".note.warn").filter({ hasText: "is blocked at 1000" }).first().waitFor();
  expect(await page.locator(".note.warn").count()).toBe(1);
  expect(troubles).toEqual([]);
});

test("shows why a run is blocked, and rechecks it", async (context) => {
  const { page, troubles } = await open(context);
  const { url, runs } = await stageRuns(harness);
  await runs.start({ name: "rollout", version: 9 }, { name: "web" }, { id: "old" });
  await page.goto(`${url}/runs/rollout/default/old`);
  await page.getByText(/started by version 9 of "rollout", this worker has version 3/).waitFor();
  await page.getByRole("button", { name: "Recheck now" }).click();
  const dialog = page.getByRole("dialog", { name: "Recheck now" });
  await dialog.getByLabel("Your name").fill("ann");
  const why = dialog.getByRole("textbox", { name: "Reason" });
  await why.fill("the worker is new");
  await why.press("Enter");
  await page.getByText("old is retried").waitFor();
  expect(await page.getByRole("button", { name: /Send signal|Cancel run/ }).count()).toBe(2);
  await page.getByRole("button", { name: "Cancel run" }).click();
  const cancel = page.getByRole("dialog", { name: "Cancel run" });
  const cause = cancel.getByRole("textbox", { name: "Reason" });
  await cause.fill("too old");
  await cause.press("Enter");
  await page.getByText(/^the run is blocked and is cancelled when it resumes/).waitFor();
  await page.getByRole("button", { name: "Cancel again" }).waitFor();
  expect(troubles).toEqual([]);
});

test("skips a compensation that cannot succeed", async (context) => {
  const { page, troubles } = await open(context);
  const { url, runs } = await stageRuns(harness, { more: [spill] });
  await runs.start(spill, null, { id: "milk" });
  await page.goto(`${url}/runs/spill/default/milk`);
  await page.getByRole("button", { name: "Skip compensation" }).click();
  const dialog = page.getByRole("dialog", { name: "Skip compensation" });
  await dialog.getByText("konverge run retry spill/default/milk --skip-undo").waitFor();
  expect(await dialog.locator("select[name=step]").inputValue()).toBe("pour");
  expect(await findBarriers(page)).toEqual([]);
  await dialog.getByLabel("Your name").fill("ann");
  const why = dialog.getByRole("textbox", { name: "Reason" });
  await why.fill("it is gone");
  await why.press("Enter");
  await expect.poll(() => sentenceOf(page).textContent()).toMatch(/^failed after /);
  await page.getByText("skipped by ann: it is gone").waitFor();
  expect(troubles).toEqual([]);
});

test("draws bars to scale from the start of each step to its record", async (context) => {
  const { page } = await open(context);
  const { url, runs } = await stageRuns(harness);
  await started(runs, "web-1");
  await runs.signal({ workflow: "rollout", id: "web-1" }, "approve", { payload: { by: "ann" } });
  await inStatus(runs, "web-1", "done");
  const ref = { workflow: "rollout", id: "web-1" };
  const { startedAtMs: fromMs = 0, endedAtMs: toMs = 0 } = (await runs.get(ref)) ?? {};
  const steps = await runs.steps(ref);
  await page.goto(`${url}/runs/rollout/default/web-1`);
  await page.locator(".line-row").first().waitFor();
  // Only a long wait is shortened.
  const toScale = page.getByRole("button", { name: "Show to scale" });
  if ((await toScale.count()) > 0) await toScale.click();
  const bars = await page
    .locator(".line-row .line-track > span:not(.cut)")
    .evaluateAll((found) =>
      found.map(({ style }) => [Number.parseFloat(style.left), Number.parseFloat(style.width)]),
    );
  const expected = steps.map(({ startedAtMs = 0, atMs = 0 }) =>
    [startedAtMs - fromMs, atMs - startedAtMs].map((ms) => (ms / (toMs - fromMs)) * 100),
  );
  expect(bars).toHaveLength(expected.length);
  for (const [index, [left = -1, width = -1]] of expected.entries()) {
    expect(bars[index]?.[0], `left of ${steps[index]?.name}`).toBeCloseTo(left, 3);
    expect(bars[index]?.[1], `width of ${steps[index]?.name}`).toBeCloseTo(width, 3);
  }
});

test("sends an update to a run that waits for one, and shows its refusal and its answer", async (context) => {
  const { page, troubles } = await open(context);
  const { url, runs } = await stageRuns(harness, { more: [scaled] });
  await runs.start(scaled, null, { id: "s1" });
  await page.goto(`${url}/runs/scaled/default/s1`);
  await page.getByRole("button", { name: "Send update" }).click();
  const dialog = page.getByRole("dialog", { name: "Send update" });
  expect(await dialog.getByLabel("Update", { exact: true }).inputValue()).toBe("scale");
  const payload = dialog.getByRole("textbox", { name: "Payload" });
  await payload.fill('{"replicas":0}');
  expect(await dialog.locator(".cli code").textContent()).toBe(
    `konverge run update scaled/default/s1 scale --payload '{"replicas":0}'`,
  );
  await dialog.getByLabel("Your name").fill("ann");
  await page.keyboard.press("Enter");
  await dialog.getByText(/replicas must be >= 1/).waitFor();
  expect(await findBarriers(page)).toEqual([]);
  await payload.fill('{"replicas":3}');
  // The message is shown for some seconds only.
  const announced = page.getByText('Update scale accepted: {"replicas":3}').waitFor();
  await dialog.getByLabel("Your name").press("Enter");
  await announced;
  await dialog.waitFor({ state: "detached" });
  await expect.poll(() => sentenceOf(page).textContent()).toMatch(/^waiting for signal go/);
  expect(troubles).toEqual([]);
});
