import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { findChromium, NO_CHROMIUM } from "../../../apps/demo/src/incident/find-chromium.ts";
import { runCommand } from "../cli-runner.ts";
import { VIEWS } from "../../../apps/demo/src/incident/take-pictures.ts";
import { until } from "../../support/until.ts";
import { DESKTOP, findBarriers, MOBILE, useChromium } from "./chromium.ts";
import { startIncidentStage, type IncidentStage } from "./demo-stage.ts";
import { findFirefox, NO_FIREFOX, openFirefox } from "./firefox.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

const open = useChromium();
let incident: IncidentStage;

let images: string;

beforeAll(async () => {
  images = await mkdtemp(join(tmpdir(), "konverge-images-"));
  incident = await startIncidentStage(findChromium() === undefined ? undefined : images);
});
afterAll(async () => {
  await rm(images, { recursive: true, force: true });
  if (incident === undefined) return;
  process.kill(incident.apiServerPid, "SIGCONT");
  await incident.stop();
});

/** The questions of an operator who was just woken. */
const QUESTIONS = ["what", "since", "why", "affected", "lost", "do"] as const;

/** A text that answers a question: on the first screen or in the details of its row, or on the page that the row opens. */
interface Answer {
  readonly text: RegExp;
  readonly isOnPage?: boolean;
}

interface Trouble {
  /** The row on the first screen. */
  readonly row: RegExp;
  readonly answers: Readonly<Record<(typeof QUESTIONS)[number], Answer>>;
  /** The commands after `konverge status` whose output has the same answers; at most two. */
  readonly commands: readonly (readonly string[])[];
}

const began = { text: /began (now|\d)/ };
const TROUBLES: Readonly<Record<string, Trouble>> = {
  "dead letters": {
    row: /certificate-issuer: 4 dead-lettered keys/,
    answers: {
      what: { text: /4 dead-lettered keys/ },
      since: began,
      why: { text: /2x acme: rateLimited/ },
      affected: { text: /checkout(\/| +)invalid-1/, isOnPage: true },
      lost: { text: /until they change or are released/ },
      do: { text: /dead-letter release certificate-issuer/ },
    },
    commands: [["dead-letter", "list"]],
  },
  "an ownership conflict": {
    row: /argocd-controller and route-policy overwrite/,
    answers: {
      what: { text: /overwrite each other's spec\.weight/ },
      since: began,
      why: { text: /argocd-controller and route-policy/ },
      affected: { text: /checkout\/web-1/ },
      lost: { text: /\d+ writes without effect/ },
      do: { text: /Give spec\.weight one owner/ },
    },
    commands: [["contention", "list"]],
  },
  "a reconcile loop": {
    row: /quota triggers itself/,
    answers: {
      what: { text: /quota triggers itself/ },
      since: began,
      why: { text: /spec\.checkedAt/ },
      affected: { text: /checkout\/team-1/ },
      lost: { text: /attempts are throttled/ },
      do: { text: /only if its value differs/ },
    },
    commands: [["contention", "list"]],
  },
  "a blocked run": {
    row: /billing-1 is blocked/,
    answers: {
      what: { text: /billing-1 is blocked/ },
      since: began,
      why: { text: /started by version 1/ },
      affected: { text: /collect/, isOnPage: true },
      lost: { text: /none is lost/ },
      do: { text: /accepts/ },
    },
    commands: [["run", "get", "billing/default/billing-1"]],
  },
  "a failed run": {
    row: /no-quota-1 failed/,
    answers: {
      what: { text: /no-quota-1 failed/ },
      since: began,
      why: { text: /the quota of backends is 0/ },
      affected: { text: /create pool/, isOnPage: true },
      lost: { text: /Steps with an undo were undone/ },
      do: { text: /konverge run retry rollout\/default\/no-quota-1/ },
    },
    commands: [["run", "get", "rollout/default/no-quota-1"]],
  },
  "a failing controller": {
    row: /database: \d+ of \d+ attempts failed/,
    answers: {
      what: { text: /database: \d+ of \d+ attempts failed/ },
      since: began,
      why: { text: /connection refused/ },
      affected: { text: /flaky-3/, isOnPage: true },
      lost: { text: /retried with backoff/ },
      do: { text: /attempt list --controller database/ },
    },
    commands: [["attempt", "list", "--controller", "database", "--outcome", "retry"]],
  },
};
const OUTAGE: Trouble = {
  row: /API server of default is failing/,
  answers: {
    what: { text: /API server of default is failing for 1 of 1 worker/ },
    since: began,
    why: { text: /timeout/ },
    affected: { text: /\d+ requests? queued|waiting/ },
    lost: { text: /none lost/ },
    do: { text: /Check the API server and its network/ },
  },
  commands: [["guard", "show", "default"]],
};

/** Looks for each answer on the first screen, and opens at most the details and the page of the row. */
async function expectAnswers(page: Page, { row, answers }: Trouble): Promise<void> {
  await page.goto(incident.server);
  const problem = page.getByRole("main").getByRole("listitem").filter({ hasText: row }).first();
  await problem.waitFor();
  const details = problem.getByRole("button", { name: /^Details/ });
  if ((await details.count()) > 0 && (await details.getAttribute("aria-expanded")) !== "true") {
    await details.click();
  }
  const inRow = await problem.innerText();
  const onPage: RegExp[] = [];
  for (const question of QUESTIONS) {
    const { text, isOnPage = false } = answers[question];
    if (isOnPage) onPage.push(text);
    else expect(inRow, question).toMatch(text);
  }
  if (onPage.length === 0) return;
  await problem.getByRole("link").first().click();
  await page.waitForURL((url) => url.pathname !== "/");
  for (const text of onPage) await page.getByRole("main").getByText(text).first().waitFor();
}

/** The problems whose details and page a test has opened. Most of them last until the outage. */
const opened = new Set<string>();

/** Opens the details and the page of each problem on the first screen that no test has opened, whatever its kind. */
async function expectAllAnswered(page: Page): Promise<void> {
  const rows = page.getByRole("main").locator("ul.problems > li");
  const load = async () => {
    await rows.first().waitFor();
    const pauses = page.locator("details.pauses > summary");
    if ((await pauses.count()) > 0) await pauses.click();
  };
  await page.goto(incident.server);
  await load();
  for (let at = 0; at < (await rows.count()); at++) {
    const row = rows.nth(at);
    const link = row.getByRole("link").first();
    const problem = `${await link.getAttribute("href")} ${await link.innerText()}`;
    if (opened.has(problem)) continue;
    opened.add(problem);
    const details = row.getByRole("button", { name: /^Details/ });
    if ((await details.getAttribute("aria-expanded")) !== "true") await details.click();
    const text = await row.innerText();
    for (const answer of [began.text, /Cause/, /Effect/, /Next step/]) {
      expect(text).toMatch(answer);
    }
    await link.click();
    await page.waitForURL((url) => url.pathname !== "/");
    await page.getByRole("main").getByRole("heading", { level: 1 }).waitFor();
    await page.locator(".skeleton").first().waitFor({ state: "detached" });
    expect(await page.getByRole("alert").allInnerTexts(), text).toEqual([]);
    await page.goBack();
    await load();
  }
}

async function expectCommandsAnswer({ row, answers, commands }: Trouble): Promise<void> {
  expect(commands.length).toBeLessThanOrEqual(2);
  const env = { KONVERGE_SERVER: incident.server, KONVERGE_TOKEN: incident.token };
  const status = await runCommand(["status"], env);
  expect(status.code).toBe(1);
  expect(status.stdout).toMatch(row);
  let text = status.stdout;
  for (const command of commands) text += (await runCommand(command, env)).stdout;
  for (const question of QUESTIONS) expect(text, question).toMatch(answers[question].text);
}

async function openDashboard(context: Parameters<typeof open>[0]): Promise<Page> {
  const authorization = `Bearer ${incident.token}`;
  const { page } = await open(context, { ...DESKTOP, extraHTTPHeaders: { authorization } });
  return page;
}

test.for(Object.entries(TROUBLES))(
  "the first screen and two clicks answer each question about %s",
  async ([, trouble], context) => {
    if (findChromium() === undefined) context.skip(NO_CHROMIUM);
    await expectAnswers(await openDashboard(context), trouble);
  },
);

test.each(Object.entries(TROUBLES))(
  "konverge status and two commands answer each question about %s",
  async (_, trouble) => {
    await expectCommandsAnswer(trouble);
  },
);

test("every problem of the incident has a start, cause, effect, next step and page", async (context) => {
  await expectAllAnswered(await openDashboard(context));
});

test("takes the pictures of the docs", async (context) => {
  if (findChromium() === undefined) context.skip(NO_CHROMIUM);
  for (const name of ["object", "object-dark", "run", "contention"]) {
    const picture = await readFile(join(images, `dashboard-${name}.png`));
    // The header of a PNG contains width and height.
    expect([picture.readUInt32BE(16), picture.readUInt32BE(20)], name).toEqual([1280, 800]);
  }
});

/** The parts of pages that have no address of their own in the navigation. */
const MORE_VIEWS = [
  `${VIEWS["object-contended"]}?tab=yaml`,
  `${VIEWS["object-contended"]}?tab=events`,
  `${VIEWS["object-contended"]}?tab=compare`,
  `${VIEWS.workflows}?status=failed`,
  `${VIEWS.objects}?phase=deadLettered`,
];
/** Of a page without further tabs, which load their code and data when they are opened. */
const MOST_REQUESTS = 5;
/** Further rows of a page have the same parts. */
const MOST_OPEN = 5;
const ALL_VIEWS = [...new Set([...Object.values(VIEWS), ...MORE_VIEWS])];

const LOOKS = [
  ["desktop, light", DESKTOP.viewport, "light"],
  ["mobile, dark", MOBILE.viewport, "dark"],
] as const;

test("no view of the incident has serious axe violations or needs more than five requests, or six for an object", async (context) => {
  const headers = { authorization: `Bearer ${incident.token}` };
  const { page, troubles, requests, visit } = await open(context, {
    ...DESKTOP,
    extraHTTPHeaders: headers,
  });
  const barriers: string[] = [];
  const costly: string[] = [];
  for (const [at, view] of ALL_VIEWS.entries()) {
    await visit(new URL(view, incident.server).href);
    await page
      .locator(view === "/jobs" ? "#root main" : "main h1")
      .first()
      .waitFor();
    await page.locator(".skeleton").first().waitFor({ state: "detached" });
    const loaded = new Set(requests.map((address) => new URL(address).pathname));
    // An object also has its explanation.
    const most = view.startsWith("/objects/") ? MOST_REQUESTS + 1 : MOST_REQUESTS;
    if (loaded.size > most && !view.startsWith("/jobs") && !view.includes("?")) {
      costly.push(`${view}: ${[...loaded].join(" ")}`);
    }
    const rows = await page.locator("details.attempt, details.line-row").all();
    for (const row of rows.slice(0, MOST_OPEN)) {
      await row.evaluate((details: { open: boolean }) => {
        details.open = true;
      });
    }
    // Each look takes seconds on a page with many rows, so a short run checks half of the views, each in one of them.
    if (!isLongRun && Math.floor(seed / LOOKS.length + at) % 2 === 0) continue;
    for (const [index, [look, viewport, colorScheme]] of LOOKS.entries()) {
      if (!isLongRun && (seed + Math.floor(at / 2) + index) % LOOKS.length !== 0) continue;
      await page.setViewportSize(viewport);
      await page.emulateMedia({ colorScheme });
      const found = await findBarriers(page);
      barriers.push(...found.map((barrier) => `${view}, ${look}: ${barrier}`));
    }
  }
  expect(barriers).toEqual([]);
  expect(costly).toEqual([]);
  expect(troubles).toEqual([]);
});

test("every view works in Firefox, on wide and narrow windows", async (context) => {
  const path = findFirefox();
  if (path === undefined) return context.skip(NO_FIREFOX);
  const firefox = await openFirefox(path, { authorization: `Bearer ${incident.token}` });
  onTestFinished(() => firefox.close());
  for (const view of ALL_VIEWS) {
    await firefox.goto(new URL(view, incident.server).href);
    await until(`${view} has its data`, async () => {
      const state = await firefox.read(
        "`${document.querySelector('main h1') !== null} ${document.querySelectorAll('.skeleton').length}`",
      );
      return state === "true 0";
    });
    const alerts =
      "[...document.querySelectorAll('[role=alert]')].map((e) => e.textContent).join()";
    expect(await firefox.read(alerts), view).toBe("");
    for (const [width, height] of [
      [390, 844],
      [1440, 900],
    ] as const) {
      await firefox.resize(width, height);
      await until(`the window is ${width} px wide, and ${view} fits it`, async () => {
        const widths = "`${innerWidth} ${document.documentElement.scrollWidth <= innerWidth}`";
        return (await firefox.read(widths)) === `${width} true`;
      });
      const plots = "document.querySelectorAll('.plot').length";
      const drawn = "document.querySelectorAll('.plot canvas').length";
      await until(`${view} has drawn its charts`, async () => {
        return (await firefox.read(plots)) === (await firefox.read(drawn));
      });
    }
  }
  expect(firefox.troubles).toEqual([]);
});

test("the first screen and konverge status answer each question about an outage", async (context) => {
  process.kill(incident.apiServerPid, "SIGSTOP");
  if (findChromium() === undefined) context.skip(NO_CHROMIUM);
  const page = await openDashboard(context);
  await page.goto(incident.server);
  await page.getByText(OUTAGE.row).first().waitFor();
  await expectAnswers(page, OUTAGE);
  await expectAllAnswered(page);
  await expectCommandsAnswer(OUTAGE);
});
