import { formatKey } from "@konverge/core";
import { createApprovalStore, proposed, type ApprovalStore } from "@konverge/queue";
import type { PlanRecord } from "@konverge/records";
import { expect, test } from "vitest";
import { keyOf, useQueues, workOn } from "../../integration/queue/queue-harness.ts";
import { loggedRecord } from "../../integration/queue/logged-record.ts";
import { until } from "../../support/until.ts";
import { DESKTOP, findBarriers, MOBILE, useChromium } from "./chromium.ts";
import { startOwnApi } from "./own-api.ts";

const harness = useQueues();
const open = useChromium();

const KEY = formatKey(keyOf("blue"));
const HASHES = { first: "a".repeat(64), second: "b".repeat(64), third: "c".repeat(64) };
const CANARY = `<img src=x onerror="window.hacked='yes'">`;

function planOf(hash: string): PlanRecord {
  return {
    kind: "plan",
    id: hash.slice(0, 8),
    key: KEY,
    controller: "node-pool",
    worker: "w-1",
    startedAt: "2026-01-01T00:00:00Z",
    finishedAt: "2026-01-01T00:00:00Z",
    durationMs: 12,
    outcome: "done",
    complete: true,
    hash,
    summary: { created: 0, changed: 1, deleted: 1, replaced: 0, unchanged: 2 },
    changes: [
      {
        resource: "configmaps",
        kind: "ConfigMap",
        namespace: "demo",
        name: "settings",
        action: "changed",
        writes: [{ verb: "apply", fieldManager: "node-pool", changed: true }],
        patch: { data: { size: hash.slice(0, 1), mode: null, note: CANARY } },
        fieldsTakenOver: [{ manager: "kubectl-edit", path: "data.size" }],
      },
      {
        resource: "pods",
        kind: "Pod",
        namespace: "demo",
        name: "blue-0",
        action: "deleted",
        writes: [{ verb: "delete", changed: true }],
      },
    ],
    events: [],
    externals: ["create bucket"],
    runs: [],
    gaps: [{ about: "pods blue-0", reason: "dependents are not listed" }],
    reads: 3,
    calls: { count: 4, durationMs: 9, rateLimitMs: 0 },
  };
}

/** Stores a plan that waits, as a worker does. */
async function propose(
  store: ApprovalStore,
  hash: string,
  given: { readonly by?: number; readonly role?: "admin" } = {},
): Promise<void> {
  const { summary, startedAt: since } = planOf(hash);
  const requesters = ["eve"];
  const common = { key: KEY, controller: "node-pool", by: 1, role: "operator" } as const;
  const proposal = { ...common, ...given, hash, summary, since, requesters };
  const record = JSON.stringify(planOf(hash));
  await store.change(KEY, (current) => proposed(current, proposal), { record });
}

const storeOf = () =>
  createApprovalStore(harness.redis, { prefix: harness.prefix, cluster: "default" });

test.for([
  ["desktop, light", { ...DESKTOP, colorScheme: "light" }],
  ["mobile, dark", { ...MOBILE, colorScheme: "dark" }],
] as const)(
  "%s: lists plans that wait, shows their changes, approves and rejects",
  async ([, options], context) => {
    const { page, troubles } = await open(context, options);
    const { url } = await startOwnApi(harness);
    const store = storeOf();
    const fits = async () =>
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(
        options.viewport.width,
      );
    await page.goto(`${url}/approvals`);
    await page.getByText("No plan waits for an approval").waitFor();
    await propose(store, HASHES.first, { by: 2 });
    const row = page.getByRole("row", { name: /^demo\/blue/ });
    await row.waitFor();
    expect(await row.textContent()).toMatch(
      /node-pool.*awaiting approval.*1 changed, 1 deleted.*eve.*0 of 2 by operators/,
    );
    expect(await findBarriers(page)).toEqual([]);
    await fits();

    await page.getByRole("link", { name: "demo/blue" }).click();
    await page.getByRole("heading", { name: "Plan of blue" }).waitFor();
    const fields = page.getByRole("table", { name: "Changed fields of configmaps demo/settings" });
    await fields.getByText("data.mode").waitFor();
    expect(await fields.locator("tr").allInnerTexts()).toEqual([
      expect.stringMatching(/data\.size.*taken over from kubectl-edit.*"a"/s),
      expect.stringMatching(/data\.mode.*removed/s),
      expect.stringContaining(JSON.stringify(CANARY)),
    ]);
    expect(await page.locator("article.write > header").allInnerTexts()).toEqual([
      expect.stringMatching(/changed.*configmaps demo\/settings.*node-pool/s),
      expect.stringMatching(/deleted.*pods demo\/blue-0/s),
    ]);
    for (const text of ["create bucket", "dependents are not listed", "2 objects written"]) {
      await page.getByText(text).waitFor();
    }
    expect(await findBarriers(page)).toEqual([]);
    await fits();

    const decide = async (label: string, name: string) => {
      await page.getByRole("button", { name: label }).focus();
      await page.keyboard.press("Enter");
      const dialog = page.getByRole("dialog", { name: label });
      await dialog.getByText(`--plan ${HASHES.first.slice(0, 12)}`).waitFor();
      await dialog.getByLabel("Your name").fill(name);
      const reason = dialog.getByRole("textbox", { name: "Reason" });
      await reason.fill("checked");
      await reason.press("Enter");
      return dialog;
    };
    const own = await decide("Approve", "eve");
    await own.getByText("another user must approve it").waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await own.getByRole("button", { name: "Close" }).click();
    await decide("Approve", "ann");
    await page.getByText("1 of 2 by operators").waitFor();
    await decide("Approve", "bob");
    await page.locator("dl.facts").getByText("approved", { exact: true }).waitFor();
    expect(await page.getByRole("button", { name: "Approve" }).count()).toBe(0);
    await decide("Reject", "cem");
    await page.getByText("by cem: checked").waitFor();
    expect(await store.read(KEY)).toMatchObject({ state: "rejected", rejected: { by: "cem" } });
    expect(await page.getByRole("button", { name: /^(Approve|Reject)$/ }).count()).toBe(0);
    expect(await page.evaluate("window.hacked")).toBeUndefined();
    expect(troubles).toEqual([]);
  },
);

test("a stale decision is not stored, and a replaced plan remains until the user continues", async (context) => {
  const { page, troubles } = await open(context);
  const { url } = await startOwnApi(harness);
  const store = storeOf();
  await propose(store, HASHES.first);
  await page.goto(`${url}/approvals/default/node-pool/demo/blue`);
  await page.getByRole("button", { name: "Approve" }).click();
  const dialog = page.getByRole("dialog", { name: "Approve" });
  await dialog.getByLabel("Your name").fill("ann");
  const reason = dialog.getByRole("textbox", { name: "Reason" });
  await reason.fill("checked");
  await propose(store, HASHES.second);
  await reason.press("Enter");
  await page.getByText("The decision was not stored, because the plan is stale:").waitFor();
  await page.getByText("aaaaaaaaaaaa has been replaced by bbbbbbbbbbbb").waitFor();
  await page.locator(".set").getByText('"b"', { exact: true }).waitFor();
  expect(await store.read(KEY)).toMatchObject({ state: "awaiting", approvals: [] });
  expect(await findBarriers(page)).toEqual([]);

  await propose(store, HASHES.third);
  await page.getByText("This plan has been replaced").waitFor();
  await page.locator(".set").getByText('"b"', { exact: true }).waitFor();
  expect(await findBarriers(page)).toEqual([]);
  await page.getByRole("button", { name: "Show the new plan" }).click();
  await page.locator(".set").getByText('"c"', { exact: true }).waitFor();

  await store.change(KEY, () => undefined);
  await page.getByText("No plan of this object waits for an approval").waitFor();
  expect(await page.getByRole("button", { name: "Approve" }).count()).toBe(0);
  expect(troubles).toEqual([]);
});

test("links the page of an object to its plan, which viewers and operators below its role cannot decide", async (context) => {
  const { page, troubles } = await open(context);
  const { url, access, queue } = await startOwnApi(harness, {
    KONVERGE_TOKEN: "0123456789abcdef".repeat(2),
  });
  const worker = workOn(queue, ({ epoch }) => {
    const record = JSON.parse(loggedRecord(epoch, [])) as object;
    return {
      outcome: { kind: "awaitApproval" },
      record: JSON.stringify({ ...record, outcome: "awaitApproval" }),
    };
  });
  await queue.request(keyOf("blue"), { kind: "cli", by: "eve" });
  await until("it ran", () => worker.closed.length === 1);
  await propose(storeOf(), HASHES.first, { role: "admin" });
  const logIn = async (name: string, role: "viewer" | "operator" | "admin") => {
    const { token } = await access.tokens.create({ name, role, scope: {} }, "test");
    await page.getByLabel("Token").fill(token);
    await page.getByLabel("Token").press("Enter");
  };
  const buttons = () => page.getByRole("button", { name: /^(Approve|Reject)$/ }).allTextContents();
  const logOut = (name: string) => page.getByRole("button", { name: `Log out ${name}` }).click();

  await page.goto(`${url}/objects/default/node-pool/demo/blue`);
  await logIn("vic", "viewer");
  await page.getByRole("link", { name: "Review the plan" }).click();
  await page.getByRole("heading", { name: "Plan of blue" }).waitFor();
  await page.locator("article.write").first().waitFor();
  expect(await buttons()).toEqual([]);
  await logOut("vic");
  await logIn("ola", "operator");
  await page.getByText("Only admins can decide.").waitFor();
  expect(await buttons()).toEqual([]);
  await logOut("ola");
  await logIn("eve", "admin");
  await page.getByText("You requested this change; another user must approve it.").waitFor();
  expect(await buttons()).toEqual(["Reject"]);
  await logOut("eve");
  await logIn("ada", "admin");
  await page.getByRole("button", { name: "Approve" }).waitFor();
  expect(await buttons()).toEqual(["Approve", "Reject"]);
  expect(troubles).toEqual([]);
  await worker.stop();
});
