import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { DASHBOARD_FOLDER } from "@konverge/dashboard";
import { formatKey } from "@konverge/core";
import { createGuard } from "@konverge/guard";
import type { Page } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import { loggedRecord } from "../../integration/queue/logged-record.ts";
import { keyOf, useQueues, workOn } from "../../integration/queue/queue-harness.ts";
import { createProgram } from "../../../apps/cli/src/create-program.ts";
import { findBarriers, useChromium } from "./chromium.ts";
import { startOwnApi, startProxy } from "./own-api.ts";
import { until } from "../../support/until.ts";
import { attemptRow, historyBatch, openHistoryWriter } from "../../support/history-batch.ts";

const harness = useQueues();
const open = useChromium();

const BY_TEST = { kind: "cli", by: "test" } as const;

/** Fills in the dialog of a button and submits it with Enter. */
async function act(page: Page, button: string, reason: string): Promise<void> {
  await page.getByRole("button", { name: button, exact: true }).first().click();
  const dialog = page.getByRole("dialog", { name: button });
  await dialog.getByLabel("Your name").fill("ada");
  await dialog.getByLabel("Reason").fill(reason);
  await dialog.getByLabel("Reason").press("Enter");
  await dialog.waitFor({ state: "detached" });
}

test("limits the first view to 60 kB of compressed scripts, and styles to 12 kB", () => {
  const page = readFileSync(join(DASHBOARD_FOLDER, "index.html"), "utf8");
  const sizeOf = (extension: string, isCounted: (name: string) => boolean) =>
    readdirSync(join(DASHBOARD_FOLDER, "assets"))
      .filter((name) => name.endsWith(extension) && isCounted(name))
      .map((name) => gzipSync(readFileSync(join(DASHBOARD_FOLDER, "assets", name))).length)
      .reduce((sum, bytes) => sum + bytes, 0);
  const first = sizeOf(".js", (name) => page.includes(name));
  expect(first).toBeGreaterThan(0);
  expect(first).toBeLessThanOrEqual(60 * 1024);
  // Plots, documentation, YAML and comparisons are loaded when they are first shown.
  expect(sizeOf(".js", () => true)).toBeLessThanOrEqual(100 * 1024);
  expect(sizeOf(".css", () => true)).toBeLessThanOrEqual(12 * 1024);
});

test("supports search, navigation, pause and resume by keyboard", async (context) => {
  const { page, troubles } = await open(context);
  const { url, queue } = await startOwnApi(harness);
  const worker = workOn(queue, () => ({ kind: "done" }));
  for (const name of ["blue-1", "blue-2", "red-1"]) await queue.request(keyOf(name), BY_TEST);
  await until("all ran", () => worker.closed.length === 3);

  await page.goto(url);
  await page.getByRole("heading", { name: "No problems: 1 controller on 1 worker." }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("blue");
  await page.getByRole("option").nth(1).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "blue-2" }).waitFor();
  expect(new URL(page.url()).pathname).toBe("/objects/default/node-pool/demo/blue-2");

  await page.locator("details.attempt summary").waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.getByText("No changes").waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
  await page.keyboard.press("Escape");

  // The dialog opens before the next frame, so no keystroke is lost.
  await page.getByRole("button", { name: "Pause" }).focus();
  const typing = await page.evaluate(
    `document.activeElement.click();
    Promise.resolve().then(() => document.activeElement.getAttribute("name"))`,
  );
  expect(typing).toBe("by");
  await page.keyboard.type("ada");
  await page.keyboard.press("Tab");
  await page.keyboard.type("a bad release");
  await page.keyboard.press("Enter");
  await page.getByText(/by ada.*a bad release/s).waitFor();
  expect(await queue.control.listPauses()).toMatchObject([{ by: "ada", reason: "a bad release" }]);
  await act(page, "Resume", "it is mended");
  await page.getByRole("button", { name: "Pause" }).waitFor();
  expect(await queue.control.listPauses()).toEqual([]);

  await page.getByRole("button", { name: "Reconcile now" }).press("Enter");
  await until("it ran again", () => worker.closed.length >= 4);
  await page.getByRole("button", { name: "1 new attempt" }).waitFor();
  expect(troubles).toEqual([]);
  await worker.stop();
});

test("renders values from users and clusters as text on all views", async (context) => {
  const { page, troubles } = await open(context);
  const { url, queue, access } = await startOwnApi(harness);
  const canary = `<img src=x onerror="window.hacked='yes'"><script>window.hacked='yes'<\u002fscript>`;
  const name = `"><svg onload="window.hacked='yes'">`;
  const worker = workOn(queue, ({ id, epoch, startedAtMs }) => {
    const at = new Date(startedAtMs).toISOString();
    const competingWriters = [{ manager: canary, operation: canary, paths: [canary] }];
    const write = {
      verb: "patch",
      resource: canary,
      name: canary,
      fieldManager: canary,
      toVersion: canary,
      patch: { metadata: { annotations: { [canary]: canary } } },
      conflicts: [{ readVersion: canary, competingWriters, waitedMs: 1 }],
      fieldsTakenOver: [{ manager: canary, path: canary }],
    };
    const record = {
      id: `${id}#${epoch}`,
      key: id,
      controller: "node-pool",
      attempt: 1,
      worker: canary,
      triggers: [{ kind: "cli", by: canary, reason: canary }],
      requestedAt: at,
      startedAt: at,
      finishedAt: at,
      durationMs: 1,
      waits: { queueMs: 1, rateLimitMs: 0, laneMs: 0, conflictMs: 1, backoffMs: 0 },
      outcome: "terminal",
      error: { code: canary, message: canary },
      writes: [write],
      conflicts: [],
      calls: { count: 1, durationMs: 1 },
      hints: [{ code: "own_spec_written", message: canary }],
      log: [{ at, level: "warn", message: canary, fields: { [canary]: canary } }],
    };
    return {
      outcome: { kind: "terminal", error: new Error(canary) },
      record: JSON.stringify(record),
    };
  });
  await queue.request(keyOf(name), { kind: "http", by: canary, reason: canary });
  await until("it is dead-lettered", () => worker.closed.length === 1);
  await queue.control.pause(
    { kind: "namespace", namespace: canary },
    { by: canary, reason: canary },
  );
  await queue.control.pause({ kind: "key", key: keyOf(name) }, { by: canary, reason: canary });

  const path = `/objects/default/node-pool/demo/${encodeURIComponent(name)}`;
  for (const view of [
    "/",
    "/attempts",
    "/contention",
    "/live",
    "/objects",
    "/dead-letters",
    path,
  ]) {
    await page.goto(new URL(view, url).href);
    await page.locator("main h1").waitFor();
    await page.locator(".skeleton").waitFor({ state: "detached" });
    if (view === path) await page.locator("details.attempt > summary").click();
    expect(await page.evaluate("window.hacked"), view).toBeUndefined();
    expect(await page.locator("main img, main script, main [onload]").count(), view).toBe(0);
  }
  await page.getByText(canary).first().waitFor();
  expect(troubles, "no policy violations either").toEqual([]);
  await worker.stop();
  expect(await access.controllers("default")).toHaveLength(1);
});

test("shows the log of an attempt", async (context) => {
  const { page, troubles } = await open(context);
  const { url, queue } = await startOwnApi(harness);
  const worker = workOn(queue, ({ epoch }) => ({
    outcome: { kind: "done" },
    record: loggedRecord(epoch, ["comparing", "resizing"]),
  }));
  await queue.request(keyOf("blue"), BY_TEST);
  await until("it ran", () => worker.closed.length === 1);
  await page.goto(new URL("/objects/default/node-pool/demo/blue", url).href);
  await page.locator("details.attempt > summary").click();
  await page.getByText("info resizing").waitFor();
  await page.getByText("2 earlier lines omitted").waitFor();
  expect(await findBarriers(page)).toEqual([]);
  expect(troubles).toEqual([]);
  await worker.stop();
});

test("works below a base path that a proxy strips", async (context) => {
  const { page, troubles, requests } = await open(context);
  const { url, queue } = await startOwnApi(harness);
  await queue.request(keyOf("blue"), BY_TEST);
  const base = await startProxy(url, "/tools/konverge/");
  await page.goto(`${base}objects/default/node-pool/demo/blue`);
  await page.getByRole("heading", { name: "blue" }).waitFor();
  await page.getByRole("link", { name: "Objects" }).click();
  await page.getByRole("link", { name: "demo/blue" }).waitFor();
  expect(new URL(page.url()).pathname).toBe("/tools/konverge/objects");
  await page.getByRole("link", { name: "demo/blue" }).click();
  await page.getByRole("heading", { name: "blue" }).waitFor();
  await page.goBack();
  await page.getByRole("heading", { name: "Objects" }).waitFor();
  expect(requests.filter((address) => !address.startsWith(base))).toEqual([]);
  expect(troubles).toEqual([]);
});

test("shows a login form with tokens, and no action buttons to viewers", async (context) => {
  const { page, troubles } = await open(context);
  const { url, access, queue } = await startOwnApi(harness, {
    KONVERGE_TOKEN: "0123456789abcdef".repeat(2),
  });
  await queue.request(keyOf("blue"), BY_TEST);
  const create = async (role: "viewer" | "operator") =>
    (await access.tokens.create({ name: `${role}-1`, role, scope: {} }, "test")).token;
  const logIn = async (token: string) => {
    await page.getByLabel("Token").fill(token);
    await page.getByLabel("Token").press("Enter");
  };
  await page.goto(`${url}/objects/default/node-pool/demo/blue`);
  await logIn("kvg_wrong");
  await page.getByText("Invalid token").waitFor();
  await logIn(await create("viewer"));
  await page.getByRole("heading", { name: "blue" }).waitFor();
  expect(await page.getByRole("button", { name: /Pause|Reconcile now/ }).count()).toBe(0);

  await page.getByRole("button", { name: "Log out viewer-1" }).click();
  await logIn(await create("operator"));
  await page.getByRole("heading", { name: "blue" }).waitFor();
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByLabel("Reason").fill("maintenance");
  await page.getByLabel("Reason").press("Enter");
  await page.getByText(/by operator-1/).waitFor();
  expect(await queue.control.listPauses()).toMatchObject([{ by: "operator-1" }]);
  expect(troubles).toEqual([]);
});

test("10,000 objects: lists 100 per page and finds objects by any part of the name", async (context) => {
  const { page, requests } = await open(context);
  const { url, queue } = await startOwnApi(harness);
  for (let block = 0; block < 10; block++) {
    await queue.requestMany(
      Array.from({ length: 1_000 }, (_, index) => ({
        key: keyOf(`object-${String(block * 1_000 + index).padStart(5, "0")}`),
        trigger: BY_TEST,
      })),
    );
  }
  await page.goto(`${url}/objects`);
  await page.getByRole("link", { name: "demo/object-00000" }).waitFor();
  expect(await page.locator("tbody tr").count()).toBe(100);
  expect(requests.length).toBeLessThanOrEqual(5);
  await page.getByRole("link", { name: "Next page" }).click();
  await page.getByRole("link", { name: "demo/object-00199" }).waitFor();
  expect(await page.locator("tbody tr").count()).toBe(100);
  await page.getByLabel("Name", { exact: true }).fill("ct-0777");
  await page.getByRole("link", { name: "demo/object-07770" }).waitFor();
  await expect.poll(() => page.locator("tbody tr").count()).toBe(10);
  expect(new URL(page.url()).searchParams.get("name")).toBe("ct-0777");
});

test("saves filters as a view, keeps them over a reload, and deletes them", async (context) => {
  const { page, troubles } = await open(context);
  const { url, queue } = await startOwnApi(harness);
  for (const name of ["blue", "red"]) await queue.request(keyOf(name), BY_TEST);
  await page.goto(`${url}/objects`);
  await page.getByRole("link", { name: "demo/red" }).waitFor();
  expect(await page.getByRole("button", { name: "Save view" }).count()).toBe(0);
  await page.getByRole("link", { name: /^Waiting/ }).click();
  await page.getByLabel("Name", { exact: true }).fill("blue");
  // Typed text is applied after a pause, and the list is also empty while loading.
  await page.waitForURL(({ searchParams }) => searchParams.get("name") === "blue");
  await page.getByRole("link", { name: "demo/red" }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Save view" }).click();
  await page.keyboard.type(`<b>blue & waiting</b>`);
  await page.keyboard.press("Enter");
  const view = page.getByRole("link", { name: "<b>blue & waiting</b>" });
  await view.waitFor();
  expect(await view.getAttribute("aria-current")).toBe("true");

  await page.goto(`${url}/dead-letters`);
  await page.getByRole("heading", { name: "Dead letters" }).waitFor();
  expect(await view.count(), "only shown on its own page").toBe(0);
  await page.goto(`${url}/objects`);
  await page.getByRole("link", { name: "demo/red" }).waitFor();
  await view.click();
  await page.getByRole("link", { name: "demo/red" }).waitFor({ state: "detached" });
  await expect.poll(() => page.getByLabel("Name", { exact: true }).inputValue()).toBe("blue");
  expect(await findBarriers(page)).toEqual([]);
  await page.getByRole("button", { name: /^Delete view/ }).click();
  await view.waitFor({ state: "detached" });
  await page.evaluate(`localStorage.setItem("konverge.views", "{broken")`);
  await page.reload();
  await page.getByRole("button", { name: "Save view" }).waitFor();
  expect(troubles).toEqual([]);
});

test("the live tail begins with the last attempts and holds events back under the mouse", async (context) => {
  const { page, troubles } = await open(context);
  const { url, queue } = await startOwnApi(harness);
  const end = openHistory();
  await end("zero");
  await page.goto(`${url}/live`);
  await page.getByText("connected", { exact: true }).waitFor();
  await page.getByRole("link", { name: "demo/zero" }).waitFor();
  await end("one");
  await page.getByRole("link", { name: "demo/one" }).waitFor();
  await page.getByRole("link", { name: "demo/one" }).hover();
  await end("two");
  await end("three");
  await page.getByRole("button", { name: "2 new events" }).waitFor();
  expect(await page.locator(".tail > li").count()).toBe(2);
  await page.getByRole("button", { name: "2 new events" }).click();
  await expect.poll(() => page.locator(".tail > li").count()).toBe(4);
  expect(await page.locator(".tail > li a").first().textContent()).toBe("demo/three");
  await page.goto(`${url}/objects?controller=node-pool`);
  await act(page, "Pause node-pool", "maintenance");
  expect(await queue.control.listPauses()).toHaveLength(1);
  expect(troubles).toEqual([]);
});

test("dead letters: counts all matches before their release", async (context) => {
  const { page, troubles } = await open(context);
  const { url, queue } = await startOwnApi(harness);
  const state = { heals: false };
  const worker = workOn(queue, () =>
    state.heals ? { kind: "done" } : { kind: "terminal", error: new Error("cannot") },
  );
  for (const name of ["blue-1", "blue-2", "red-1"]) await queue.request(keyOf(name), BY_TEST);
  await until("all are dead-lettered", () => worker.closed.length === 3);
  await page.goto(`${url}/`);
  await page.getByRole("heading", { name: "1 error." }).waitFor();
  await page.getByRole("link", { name: "node-pool: 3 dead-lettered keys" }).click();
  const listed = page.getByRole("table", { name: "Dead letters by name" }).locator("tbody tr");
  await page.getByLabel("Name", { exact: true }).fill("blue");
  await expect.poll(() => listed.count()).toBe(2);
  await page.getByRole("button", { name: "Release all matches" }).click();
  await page.getByText("2 objects of node-pool will be retried").waitFor();
  expect(worker.closed).toHaveLength(3);
  state.heals = true;
  await page.keyboard.press("Escape");
  await act(page, "Release all matches", "it is mended");
  await page.getByText("2 dead letters released").waitFor();
  await until("they ran again", () => worker.closed.length === 5);
  const dead = await queue.control.listKeys({ phase: "deadLettered" });
  expect(dead.items.map(({ key }) => key.split("/").at(-1))).toEqual(["red-1"]);
  expect(troubles).toEqual([]);
  await worker.stop();
});

test("isolates an API server after a preview, sets its rate and resets its guard", async (context) => {
  const { page, troubles } = await open(context);
  const { url, queue } = await startOwnApi(harness);
  for (const name of ["blue", "red"]) {
    await queue.request(keyOf(name), { kind: "cli", by: "test" });
  }
  const guard = await createGuard({
    redis: harness.target,
    prefix: harness.prefix,
    cluster: "default",
    workerId: "w-1",
    limits: { ratePerSecond: 500 },
  });
  onTestFinished(() => guard.close());
  await page.goto(`${url}/guards`);
  await page.getByText(/ of 500$/).waitFor();
  await page.getByRole("button", { name: "Isolate" }).click();
  const preview = page.locator("dialog[open]").getByRole("status");
  await preview
    .getByText(
      "Affected now: 1 controller, 0 workflows, 0 running attempts, 2 waiting requests, 0 delayed requests.",
    )
    .waitFor();
  await page.locator("dialog[open]").getByRole("button", { name: "Close" }).click();
  expect(guard.breaker.mode, "a preview changes nothing").toBe("closed");
  await act(page, "Isolate", "an upgrade");
  await page.getByText(/Isolated by ada.*an upgrade/).waitFor();
  await page.getByRole("button", { name: "Set rate" }).click();
  await page.getByLabel("Calls per second").fill("20");
  await page.getByLabel("Your name").fill("ada");
  await page.getByLabel("Reason").fill("begin slowly");
  await page.getByLabel("Reason").press("Enter");
  await page.getByText("set by ada: begin slowly").waitFor();
  await act(page, "Reset", "the upgrade is over");
  await page.getByText("calls are sent", { exact: true }).waitFor();
  const history = page.getByRole("table");
  await history.getByRole("row", { name: /ada: an upgrade.*ada: the upgrade is over/ }).waitFor();
  expect(troubles).toEqual([]);
});

type Program = ReturnType<typeof createProgram>;

/** Returns the flags of all commands by their names. */
function flagsOf(command: Program, above: string): [line: string, flags: readonly string[]][] {
  const flags = command.options.flatMap(({ long, short }) => [long ?? "", short ?? ""]);
  return [
    [above, flags],
    ...command.commands.flatMap((sub) => flagsOf(sub, `${above} ${sub.name()}`)),
  ];
}

test("each view shows a valid CLI command", async (context) => {
  const { page } = await open(context);
  const { url, queue } = await startOwnApi(harness);
  await queue.request(keyOf("blue"), BY_TEST);
  const commands = new Map(flagsOf(createProgram(), "konverge"));
  const filters = "?name=b&namespace=demo&controller=node-pool";
  for (const view of [
    "/",
    `/attempts${filters}&outcome=done&manager=hpa&error=x&hint=own_spec_written&kind=NodePool`,
    "/contention?hours=6",
    `/live${filters}`,
    `/objects${filters}&phase=waiting`,
    `/dead-letters${filters}`,
    "/approvals?namespace=demo&controller=node-pool",
    "/approvals/default/node-pool/demo/blue",
    "/drift?namespace=demo&controller=node-pool",
    "/drift/default/node-pool/demo/blue",
    "/workers",
    "/workflows?workflow=release&status=blocked&search=web&by=ann&key=k",
    "/objects/default/node-pool/demo/blue",
    "/objects/default/node-pool/demo/none",
  ]) {
    await page.goto(`${url}${view}`);
    const [line = ""] = (await page.locator(".cli code").last().textContent())?.split(" |") ?? [];
    const words = line.split(" ");
    const named = [...commands.keys()]
      .filter((name) => line === name || line.startsWith(`${name} `))
      .toSorted((one, other) => other.length - one.length)[0];
    expect(named, `${view}: ${line}`).toMatch(/^konverge \w/);
    // Groups of commands cannot be run.
    expect([...commands.keys()].filter((name) => name.startsWith(`${named} `))).toEqual([]);
    const flags = words.filter((word) => word.startsWith("-"));
    expect(
      flags.filter((flag) => !commands.get(named ?? "")?.includes(flag)),
      line,
    ).toEqual([]);
  }
});

/** Returns a function that records a finished attempt of the named object. */
function openHistory(): (name: string) => Promise<void> {
  const writer = openHistoryWriter(harness);
  return async (name) => {
    const row = attemptRow({ key: formatKey(keyOf(name)) });
    await writer.flush(historyBatch({ rows: [{ recordBytes: 100, row }] }));
  };
}
