import { createControllerRegistry } from "@konverge/queue";
import { TerminalError } from "@konverge/core";
import { defineWorkflow, openWorkflows, ready, type Workflows } from "@konverge/workflow";
import type { Page } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import { startEmbeddedServer } from "../../integration/embedded-server.ts";
import { installWidgets } from "../../integration/kube-servers.ts";
import { keyOf, until, useQueues } from "../../integration/queue-harness.ts";
import { DESKTOP, findBarriers, MOBILE, useChromium } from "./chromium.ts";
import { startOwnApi } from "./own-api.ts";

const harness = useQueues();
const open = useChromium();

const approval = {
  parse(value: unknown): { readonly by: string } {
    const { by } = (value ?? {}) as { readonly by?: unknown };
    if (typeof by !== "string") throw new Error("by: write a name");
    return { by };
  },
};
interface Spec {
  readonly name: string;
  readonly fails?: boolean;
}
const smoke = defineWorkflow("smoke", { version: 1 }, (w, name: string) =>
  w.step("probe", () => `${name} answers`),
);
const rollout = defineWorkflow("rollout", { version: 3 }, async (w, { name, fails }: Spec) => {
  const pool = await w.step("create", () => ({ pool: name }), { undo: () => undefined });
  await w.step("label", ({ attempt }) => {
    if (attempt < 3) throw new Error("busy");
  });
  await w.child("smoke", smoke, name);
  const { by } = (await w.signal("approve", { schema: approval, timeout: "24h" })) ?? {};
  await w.step("publish", () => {
    if (fails === true) throw new TerminalError("the quota of backends is 0");
  });
  return { pool, by };
});

/** What the body of `mend` does. */
let mending: () => Promise<void>;
const nap = defineWorkflow("nap", { version: 1 }, (w) => w.sleep("night", "8h"));
const mend = defineWorkflow("mend", { version: 1 }, async (w) => {
  await w.step("look", () => "cracked");
  await w.step("glue", () => mending());
  await w.child("dry", nap, null);
});
const ALL = [rollout, smoke, mend, nap];

/** Runs of real workers, behind a real API, in front of a real browser. */
async function stage(
  env: Readonly<Record<string, string>> = {},
): Promise<Awaited<ReturnType<typeof startOwnApi>> & { readonly runs: Workflows }> {
  const api = await startOwnApi(harness, env);
  const redis = { url: harness.url };
  const { prefix } = harness;
  const registry = createControllerRegistry({ redis, prefix, cluster: "default" });
  await registry.announce([], ALL);
  await registry.close();
  const runs = openWorkflows({ redis, prefix });
  runs.work({ workflows: ALL });
  onTestFinished(() => runs.close());
  return { ...api, runs };
}

/** Starts a run and waits until it is in that status. */
async function started(
  runs: Workflows,
  id: string,
  spec: Spec = { name: id },
  status = "parked",
): Promise<void> {
  await runs.start(rollout, spec, { id });
  await inStatus(runs, id, status);
}
async function inStatus(runs: Workflows, id: string, status: string): Promise<void> {
  await until(`${id} is ${status}`, async () => {
    const run = await runs.get({ workflow: "rollout", id });
    return run?.status === status && run.waits?.[0]?.kind !== "child";
  });
}

const rowsOf = (page: Page) => page.locator(".line-row .line-name .status").allTextContents();
const sentenceOf = (page: Page) => page.locator(".run-sentence");

test("a list tells what each run waits for, is filtered by the address, and is live", async (context) => {
  const { page, troubles } = await open(context);
  const { url, runs } = await stage();
  await started(runs, "web-1");
  await page.goto(url);
  await page.getByRole("link", { name: "Workflows" }).click();
  const row = page.getByRole("row", { name: /web-1 rollout/ });
  await row.getByText("waiting").waitFor();
  expect(await row.textContent()).toMatch(/for signal approve, ends in 24 h/);

  await page.getByLabel("Workflow").selectOption("smoke");
  await page.getByRole("row", { name: /web-1\.smoke/ }).waitFor();
  await expect.poll(() => page.locator("tbody tr").count()).toBe(1);
  expect(new URL(page.url()).search).toBe("?workflow=smoke");
  expect(await page.locator(".cli code").last().textContent()).toBe("konverge run list smoke");
  await page.goBack();

  await page.goto(`${url}/workflows?workflow=rollout`);
  // Under the mouse nothing moves; the row itself tells its news.
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

test("runs are found by status, part of a name, who started them and key; the overview leads to what is wrong", async (context) => {
  const { page, troubles } = await open(context);
  const { url, runs } = await stage();
  await runs.start(rollout, { name: "web" }, { id: "web-1", by: "ann", key: "team-a/web" });
  await runs.start(rollout, { name: "web", fails: true }, { id: "db-1", by: "bob" });
  await inStatus(runs, "web-1", "parked");
  await runs.signal({ workflow: "rollout", id: "db-1" }, "approve", { payload: { by: "ann" } });
  await inStatus(runs, "db-1", "failed");
  const rows = async () => (await page.locator("tbody th a").allTextContents()).toSorted();
  const line = () => page.locator(".cli code").last().textContent();

  await page.goto(`${url}/workflows?workflow=rollout`);
  await expect.poll(rows).toEqual(["db-1", "web-1"]);
  await page.locator("select").nth(1).selectOption("waiting");
  await expect.poll(rows).toEqual(["web-1"]);
  expect(new URL(page.url()).searchParams.get("status")).toBe("parked");
  expect(await line()).toBe("konverge run list rollout --status parked");
  await page.locator("select").nth(1).selectOption("any");
  await page.getByRole("textbox", { name: "Search" }).fill("TEAM-a");
  await expect.poll(rows).toEqual(["web-1"]);
  expect(await line()).toBe("konverge run list rollout --search TEAM-a");
  await page.getByRole("textbox", { name: "Search" }).fill("nobody");
  await page.getByText("No run matches").waitFor();
  await page.goto(`${url}/workflows?by=bob`);
  await expect.poll(rows).toEqual(["db-1"]);
  await page.getByText("by bob", { exact: true }).waitFor();
  await page.getByRole("link", { name: "db-1" }).click();
  await page.getByText("by bob", { exact: true }).waitFor();

  await page.goto(url);
  const wrong = page.getByRole("list", { name: "What is wrong" });
  await wrong.getByRole("link", { name: /rollout: db-1 failed: .*the quota/ }).click();
  await page.getByRole("heading", { name: "db-1" }).waitFor();
  await page.goto(url);
  await page.getByRole("row", { name: /rollout version 3/ }).waitFor();
  await page.locator('td[data-label="Waiting"] a[href*="workflow=rollout"]').click();
  await expect.poll(rows).toEqual(["web-1"]);
  await page.goto(`${url}/w/rollout/default/web-1`);
  await page.getByRole("link", { name: "team-a/web" }).click();
  await expect.poll(rows).toEqual(["web-1"]);
  expect(troubles).toEqual([]);
});

test("an operator starts a run from the list; input that is no JSON is told", async (context) => {
  const { page, troubles } = await open(context);
  const { url, runs } = await stage();
  await started(runs, "web-1");
  await page.goto(`${url}/workflows?workflow=rollout`);
  await page.getByRole("row", { name: /web-1 rollout/ }).waitFor();
  await page.getByRole("button", { name: "Start a run" }).click();
  const dialog = page.getByRole("dialog", { name: "Start a run" });
  expect(await dialog.getByRole("combobox", { name: "Workflow" }).inputValue()).toBe("rollout");
  const input = dialog.getByRole("textbox", { name: "Input" });
  await input.fill("{name: 'new'}");
  await dialog.getByRole("textbox", { name: "Key" }).fill("team-a/new");
  const by = dialog.getByLabel("Who you are");
  await by.fill("ann");
  await by.press("Enter");
  await dialog.getByText("The input is no JSON.").waitFor();
  await input.fill(`{"name":"new"}`);
  expect(await dialog.locator(".cli code").textContent()).toBe(
    `konverge run start rollout --input '{"name":"new"}' --key team-a/new`,
  );
  expect(await findBarriers(page)).toEqual([]);
  await by.press("Enter");
  await expect.poll(() => sentenceOf(page).textContent()).toMatch(/^waiting for signal approve/);
  const [run] = (await runs.list("rollout")).runs;
  expect(run).toMatchObject({ key: "team-a/new", by: "ann" });
  expect(page.url()).toBe(`${url}/w/rollout/default/${run?.id}`);
  await page.getByText("by ann", { exact: true }).waitFor();
  expect(troubles).toEqual([]);
});

test("the search box finds runs beside objects; what people do to a run is in the live tail", async (context) => {
  const { page, troubles } = await open(context);
  const { url, runs, queue } = await stage();
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
  // The newer one is its child.
  await page.getByRole("option", { name: "blue-run.smoke run of smoke · done" }).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "blue-run" }).waitFor();
  expect(new URL(page.url()).pathname).toBe("/w/rollout/default/blue-run");

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

test("an operator sends a signal and cancels; a slip in the JSON is told, and who did it is shown", async (context) => {
  const { page, troubles } = await open(context);
  const { url, runs } = await stage();
  await started(runs, "web-1");
  await page.goto(`${url}/w/rollout/default/web-1`);
  await expect
    .poll(() => sentenceOf(page).textContent())
    .toMatch(/^waiting for signal approve, .* so far; ends by itself in 24 h$/);
  expect(await rowsOf(page)).toEqual(["create", "label", "smoke", "approve"]);
  await page.getByText("3 tries").waitFor();

  // By keyboard alone.
  await page.getByRole("button", { name: "Send signal" }).focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Send signal" });
  const payload = dialog.getByRole("textbox", { name: "Payload" });
  expect(await dialog.getByLabel("Signal", { exact: true }).inputValue()).toBe("approve");
  await payload.fill("{by: ann}");
  expect(await dialog.locator(".cli code").textContent()).toBe(
    `konverge run signal rollout/default/web-1 approve --payload '{by: ann}'`,
  );
  await dialog.getByLabel("Who you are").fill("ann");
  await page.keyboard.press("Enter");
  await dialog.getByText("The payload is no JSON.").waitFor();
  expect(await findBarriers(page)).toEqual([]);
  await payload.fill('{"by": 7}');
  await dialog.getByLabel("Who you are").press("Enter");
  await dialog.waitFor({ state: "detached" });
  await page.getByText("1 signal refused").waitFor();

  await page.getByRole("button", { name: "Send signal" }).click();
  await payload.fill('{"by": "ann"}');
  await dialog.getByLabel("Who you are").press("Enter");
  await expect.poll(() => sentenceOf(page).textContent()).toMatch(/^done in /);
  expect(await rowsOf(page)).toEqual(["create", "label", "smoke", "approve", "publish"]);
  await page.getByText("by ann").waitFor();
  expect(await page.getByRole("button", { name: /Send signal|Cancel run/ }).count()).toBe(0);
  await page.locator(".values").getByText('"by": "ann"').waitFor();

  await started(runs, "web-2");
  await page.goto(`${url}/w/rollout/default/web-2`);
  await page.getByRole("button", { name: "Cancel run" }).click();
  const cancel = page.getByRole("dialog", { name: "Cancel run" });
  await cancel.getByText("konverge run cancel rollout/default/web-2").waitFor();
  const why = cancel.getByRole("textbox", { name: "Why" });
  await why.fill("the wrong pool");
  await why.press("Enter");
  await expect
    .poll(() => sentenceOf(page).textContent())
    .toMatch(/^cancelled after .* by ann: the wrong pool$/);
  expect(await rowsOf(page)).toEqual(["create", "label", "smoke", "approve", "create"]);
  await page.getByRole("heading", { name: "Taken back" }).waitFor();
  expect(troubles).toEqual([]);
});

test("what failed is tried again: the same run goes on live, its child is a link, and another try leads back", async (context) => {
  const { page, troubles } = await open(context);
  const { url, runs } = await stage();
  mending = () => Promise.reject(new TerminalError("no glue is left"));
  await runs.start(mend, null, { id: "vase" });
  await page.goto(`${url}/w/mend/default/vase`);
  await expect.poll(() => sentenceOf(page).textContent()).toMatch(/^failed after /);
  await page.getByText('step_failed step "glue" failed: no glue is left').waitFor();

  const { promise: held, resolve: dry } = Promise.withResolvers<void>();
  mending = () => held;
  await page.getByRole("button", { name: "Go on from what failed" }).click();
  const dialog = page.getByRole("dialog", { name: "Go on from what failed" });
  await dialog.getByText("konverge run retry mend/default/vase --from-failed").waitFor();
  await dialog.getByLabel("Who you are").fill("ann");
  const why = dialog.getByRole("textbox", { name: "Why" });
  await why.fill("glue was bought");
  await why.press("Enter");
  await page.getByText("by ann: glue was bought").waitFor();
  await page.getByRole("img", { name: /^at work for/ }).waitFor();
  dry();
  await page.getByRole("link", { name: "its run" }).click();
  await page.getByRole("heading", { name: "vase.dry" }).waitFor();
  expect(await sentenceOf(page).textContent()).toMatch(/^waiting out its sleep night/);
  await page.getByRole("link", { name: "vase", exact: true }).click();
  await page.getByRole("heading", { name: "vase", exact: true }).waitFor();

  await runs.cancel({ workflow: "mend", id: "vase" }, { by: "ann", reason: "it is new now" });
  await expect.poll(() => sentenceOf(page).textContent()).toMatch(/^cancelled after /);
  await page.getByRole("button", { name: "Run again" }).click();
  const again = page
    .getByRole("dialog", { name: "Run again" })
    .getByRole("textbox", { name: "Why" });
  await again.fill("it broke again");
  await again.press("Enter");
  await page.getByRole("heading", { name: "vase~2" }).waitFor();
  await page.getByText("by ann: it broke again").waitFor();
  await page.getByRole("link", { name: "vase", exact: true }).waitFor();
  expect(troubles).toEqual([]);
});

test("a wait for an object says what the object lacks, and ends live when it is ready", async (context) => {
  const { page, troubles } = await open(context);
  const { url, runs } = await stage();
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
    redis: { url: harness.url },
    prefix: harness.prefix,
    cluster: "default",
  });
  await registry.announce([], [waiting]);
  await registry.close();
  const clusters = { home: "default", client: async () => client };
  const worker = runs.work({ workflows: [waiting], clusters });
  const watch = runs.watch({ clusters, ...place, identity: "test" });
  await runs.start(waiting, null, { id: "r" });

  await page.goto(`${url}/w/waiting/default/r`);
  await expect
    .poll(() => sentenceOf(page).textContent())
    .toMatch(/^waiting for web is ready: .*1 of 3 <b>are<\/b> up, .* so far; /);
  await page.locator(".line-note").getByText("1 of 3 <b>are</b> up").waitFor();
  await report("True", "3 of 3 are up");
  await expect.poll(() => sentenceOf(page).textContent(), { timeout: 20_000 }).toMatch(/^done in /);
  expect(await rowsOf(page)).toEqual(["web is ready"]);
  expect(troubles).toEqual([]);
  await Promise.all([watch.stop(), worker.stop()]);
});

test("a run that is stuck says why, and is looked at again", async (context) => {
  const { page, troubles } = await open(context);
  const { url, runs } = await stage();
  await runs.start({ name: "rollout", version: 9 }, { name: "web" }, { id: "old" });
  await page.goto(`${url}/w/rollout/default/old`);
  await page.getByText(/started by version 9 of "rollout", this worker has version 3/).waitFor();
  await page.getByRole("button", { name: "Look again" }).click();
  const dialog = page.getByRole("dialog", { name: "Look again" });
  await dialog.getByLabel("Who you are").fill("ann");
  const why = dialog.getByRole("textbox", { name: "Why" });
  await why.fill("the worker is new");
  await why.press("Enter");
  await page.getByText("old goes on").waitFor();
  expect(await page.getByRole("button", { name: /Send signal|Cancel run/ }).count()).toBe(2);
  expect(troubles).toEqual([]);
});

test("bars are to scale: each begins where its step began and ends with its record", async (context) => {
  const { page } = await open(context);
  const { url, runs } = await stage();
  await started(runs, "web-1");
  await runs.signal({ workflow: "rollout", id: "web-1" }, "approve", { payload: { by: "ann" } });
  await inStatus(runs, "web-1", "done");
  const ref = { workflow: "rollout", id: "web-1" };
  const { startedAtMs: fromMs = 0, endedAtMs: toMs = 0 } = (await runs.get(ref)) ?? {};
  const steps = await runs.steps(ref);
  await page.goto(`${url}/w/rollout/default/web-1`);
  await page.locator(".line-row").first().waitFor();
  const bars = await page
    .locator(".line-row .line-track > span")
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

test("what a run records is text: nothing of it runs; viewers get no buttons", async (context) => {
  const { page, troubles } = await open(context);
  const { url, runs, access } = await stage({ KONVERGE_TOKEN: "0123456789abcdef" });
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
  await page.goto(`${url}/w/rollout/default/waits`);
  await page.getByLabel("Token").fill(viewer.token);
  await page.getByLabel("Token").press("Enter");
  await sentenceOf(page).getByText("waiting").waitFor();
  expect(await page.getByRole("button", { name: /Send signal|Cancel run/ }).count()).toBe(0);
  for (const view of ["/workflows", `/w/rollout/default/${encodeURIComponent(id)}`]) {
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

test.for([
  ["desktop, light", { ...DESKTOP, colorScheme: "light" }],
  ["mobile, dark", { ...MOBILE, colorScheme: "dark" }],
  ["320 px, forced colours", { viewport: { width: 320, height: 640 }, forcedColors: "active" }],
] as const)(
  "%s: the pages of runs fit, ask little, and axe finds nothing serious",
  async ([, options], context) => {
    const { page, troubles, requests } = await open(context, options);
    const { url, runs } = await stage();
    await started(runs, "waits");
    await started(runs, "a-rather-long-name-of-a-run-without-any-place-to-break-it-in-two");
    await runs.start(rollout, { name: "web", fails: true }, { id: "fails" });
    await runs.signal({ workflow: "rollout", id: "fails" }, "approve", { payload: { by: "ann" } });
    await inStatus(runs, "fails", "failed");
    await runs.start({ name: "rollout", version: 9 }, { name: "web" }, { id: "stuck" });
    await inStatus(runs, "stuck", "stuck");
    for (const view of [
      "/workflows",
      ...["waits", "fails", "stuck"].map((id) => `/w/rollout/default/${id}`),
    ]) {
      await page.goto(`${url}${view}`);
      await page.locator("main h1").waitFor();
      await page.locator(".skeleton").waitFor({ state: "detached" });
      expect(requests.length, `${view}: ${requests.join(" ")}`).toBeLessThanOrEqual(5);
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
