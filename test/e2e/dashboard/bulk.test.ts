import { formatKey } from "@konverge/core";
import type { Page } from "playwright-core";
import { expect, test, type TestContext } from "vitest";
import { keyOf, useQueues, workOn } from "../../integration/queue/queue-harness.ts";
import { attemptRow, historyBatch, openHistoryWriter } from "../../support/history-batch.ts";
import { until } from "../../support/until.ts";
import { DESKTOP, findBarriers, useChromium } from "./chromium.ts";
import { startOwnApi, type OwnApi } from "./own-api.ts";

const harness = useQueues();
const open = useChromium();

const ADMIN = "0123456789abcdef".repeat(2);
const BY_TEST = { kind: "cli", by: "test" } as const;
const OTHER = { ...keyOf("hidden"), namespace: "other" };

/** Opens the dashboard with the token of an operator whose scope is the namespace `demo`. */
async function openScoped(context: TestContext, { access }: OwnApi) {
  const scope = { namespaces: ["demo"] };
  const { token } = await access.tokens.create({ name: "ada", role: "operator", scope }, "test");
  return await open(context, {
    ...DESKTOP,
    extraHTTPHeaders: { authorization: `Bearer ${token}` },
  });
}

/** Selects objects of the list and opens the dialog of a button. Returns the objects of its preview. */
async function preview(page: Page, names: readonly string[], button: string): Promise<string[]> {
  for (const name of names) {
    await page
      .getByRole("checkbox", { name: `Select demo/${name}` })
      .first()
      .check();
  }
  await page.getByRole("button", { name: button, exact: true }).click();
  const items = page.locator("dialog[open] .preview li");
  await items.first().waitFor();
  expect(await findBarriers(page)).toEqual([]);
  return (await items.allInnerTexts()).map((text) => text.replace("node-pool demo/", ""));
}

/** Submits the open dialog. The author is the token. */
async function confirm(page: Page, message: string): Promise<void> {
  const dialog = page.locator("dialog[open]");
  expect(await dialog.getByLabel("Your name").inputValue()).toBe("ada");
  await dialog.getByLabel("Reason").fill("the incident");
  await dialog.getByLabel("Reason").press("Enter");
  await page.getByText(message, { exact: true }).waitFor();
  await dialog.waitFor({ state: "detached" });
}

test("each bulk action of a scoped token previews its objects, applies to them, and reports the result", async (context) => {
  const api = await startOwnApi(harness, { KONVERGE_TOKEN: ADMIN });
  const { url, queue } = api;
  const { page, troubles } = await openScoped(context, api);
  for (const name of ["a", "b", "c"]) await queue.request(keyOf(name), BY_TEST);
  await queue.request(OTHER, BY_TEST);
  await page.goto(`${url}/objects`);
  expect(await page.getByText("hidden").count(), "objects outside the scope").toBe(0);

  expect(await preview(page, ["a", "b"], "Pause 2")).toEqual(["a", "b"]);
  expect(await queue.control.listPauses(), "a preview changes nothing").toEqual([]);
  await confirm(page, "Pause: 2 objects");
  const pauses = await queue.control.listPauses();
  expect(pauses.map(({ by, reason }) => [by, reason])).toEqual([
    ["ada", "the incident"],
    ["ada", "the incident"],
  ]);

  expect(await preview(page, ["a", "b", "c"], "Resume 2")).toEqual(["a", "b"]);
  await confirm(page, "Resume: 2 objects");
  expect(await queue.control.listPauses()).toEqual([]);

  expect(await preview(page, ["a"], "Cancel requests of 1")).toEqual(["a"]);
  await confirm(page, "Cancel requests of: 1 object");
  const phaseOf = async (name: string) => (await queue.getKey(keyOf(name)))?.phase;
  await until("the request is cancelled", async () => (await phaseOf("a")) === "idle");
  expect(await phaseOf("b")).toBe("waiting");

  expect(await preview(page, ["a", "c"], "Reconcile 2")).toEqual(["a", "c"]);
  await confirm(page, "Reconcile: 2 objects");
  await until("both wait", async () => (await phaseOf("a")) === "waiting");

  const worker = workOn(queue, () => ({ kind: "terminal", error: new Error("no domain") }));
  await until("all are dead-lettered", () => worker.closed.length === 4);
  await page.goto(`${url}/objects?phase=deadLettered`);
  expect(await preview(page, ["a", "b"], "Release 2")).toEqual(["a", "b"]);
  await confirm(page, "Release: 2 objects");
  await until("both ran again", () => worker.closed.length === 6);
  await worker.stop();
  expect(troubles).toEqual([]);
});

test("the list of attempts acts on the objects of a scoped token only", async (context) => {
  const api = await startOwnApi(harness, { KONVERGE_TOKEN: ADMIN });
  const { page, troubles } = await openScoped(context, api);
  const writer = openHistoryWriter(harness);
  for (const key of [keyOf("a"), keyOf("b"), OTHER]) {
    await api.queue.request(key, BY_TEST);
    const row = attemptRow({ key: formatKey(key) });
    await writer.flush(historyBatch({ rows: [{ recordBytes: 100, row }] }));
  }
  await page.goto(`${api.url}/attempts`);
  await page.getByRole("link", { name: "demo/a" }).waitFor();
  expect(await page.getByText("hidden").count()).toBe(0);
  await page.getByRole("button", { name: "Select all 2 objects on this page" }).click();
  expect(await preview(page, [], "Pause 2")).toEqual(["b", "a"]);
  await confirm(page, "Pause: 2 objects");
  const pauses = await api.queue.control.listPauses();
  const names = pauses.map(({ scope }) => (scope.kind === "key" ? scope.key.name : ""));
  expect(names.toSorted()).toEqual(["a", "b"]);
  expect(troubles).toEqual([]);
});

test("a bulk action that fails for an object keeps its dialog open with the reason", async (context) => {
  const api = await startOwnApi(harness, { KONVERGE_TOKEN: ADMIN });
  const { page } = await openScoped(context, api);
  for (const name of ["a", "b"]) await api.queue.request(keyOf(name), BY_TEST);
  await page.goto(`${api.url}/objects`);
  await preview(page, ["a", "b"], "Pause 2");
  // The API rejects the second request, as after a change of the token's scope.
  await page.route("**/v1/pauses", async (route) => {
    if (route.request().postData()?.includes('"name":"b"') !== true) return await route.continue();
    const problem = { code: "forbidden", title: "Forbidden", detail: "the scope has changed" };
    await route.fulfill({ status: 403, json: problem, contentType: "application/problem+json" });
  });
  const dialog = page.locator("dialog[open]");
  await dialog.getByLabel("Reason").fill("the incident");
  await dialog.getByLabel("Reason").press("Enter");
  const alert = dialog.getByRole("alert");
  await alert.getByText("1 of 2 failed").waitFor();
  expect(await alert.innerText()).toMatch(/demo\/b\s+the scope has changed/);
  expect(await api.queue.control.listPauses()).toHaveLength(1);
  expect(await findBarriers(page)).toEqual([]);
});
