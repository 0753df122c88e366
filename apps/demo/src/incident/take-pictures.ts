import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { KonvergeError } from "@konverge/core";
import { chromium, type Browser, type Page } from "playwright-core";
import { pollUntil } from "../stage/poll-until.ts";
import { CHROMIUM_ARGS, findChromium, NO_CHROMIUM } from "./find-chromium.ts";

/** The views of the dashboard, with objects and runs of the incident. */
export const VIEWS = {
  overview: "/",
  "controller-tenant": "/controllers/tenant",
  "controller-certificate-issuer": "/controllers/certificate-issuer",
  "controller-route-policy": "/controllers/route-policy",
  "object-contended": "/objects/default/route-policy/checkout/web-1",
  "object-dead-lettered": "/objects/default/certificate-issuer/checkout/limited-1",
  "object-loop": "/objects/default/quota/checkout/team-1",
  "object-healthy": "/objects/default/tenant/checkout/tenant-00002",
  attempts: "/attempts",
  workflows: "/workflows",
  "run-waiting": "/runs/rollout/default/awaited-1",
  "run-failed": "/runs/rollout/default/no-quota-1",
  "run-undo-fails": "/runs/rollout/default/kept-pool-1",
  "run-blocked": "/runs/billing/default/billing-1",
  schedules: "/schedules",
  schedule: "/schedules/default/report",
  contention: "/contention",
  live: "/live",
  objects: "/objects",
  "dead-letters": "/dead-letters",
  guards: "/guards",
  workers: "/workers",
  audit: "/audit",
  docs: "/docs",
  "docs-page": "/docs/dashboard",
  hint: "/hints/own_status_trigger",
  palette: "/",
} as const;
type View = keyof typeof VIEWS;

/** The views that an outage changes. */
const IN_OUTAGE: readonly View[] = ["overview", "controller-tenant", "object-healthy", "guards"];

/** The pictures of the docs by their view. They are as wide as a page of the docs can show them. */
const DOC_IMAGES: Readonly<Record<"incident" | "outage", Partial<Record<string, View>>>> = {
  incident: {
    "dashboard-object": "object-contended",
    "dashboard-object-dark": "object-contended",
    "dashboard-run": "run-undo-fails",
    "dashboard-contention": "contention",
  },
  outage: { "dashboard-overview": "overview" },
};

const WIDTHS = { 1440: 900, 1024: 768, 390: 844 } as const;
const SCHEMES = ["light", "dark"] as const;
type Scheme = (typeof SCHEMES)[number];

export interface Pictures {
  readonly server: string;
  readonly token: string;
  /** The part of the incident: most views are the same during the outage. */
  readonly part: "incident" | "outage";
  /** Folder for every view in each width and color scheme. */
  readonly screenshots: string | undefined;
  /** Folder for the pictures of the docs. */
  readonly docImages: string | undefined;
  readonly onPicture: (file: string) => void;
  readonly signal: AbortSignal;
}

/** Takes the pictures of one part. @throws KonvergeError `demo_failed` without a Chromium */
export async function takePictures(pictures: Pictures): Promise<void> {
  const { part, screenshots, docImages } = pictures;
  const executablePath = findChromium();
  if (executablePath === undefined) throw new KonvergeError("demo_failed", NO_CHROMIUM);
  const browser = await chromium.launch({ executablePath, args: [...CHROMIUM_ARGS] });
  try {
    if (docImages !== undefined) {
      await mkdir(docImages, { recursive: true });
      for (const [name, view] of Object.entries(DOC_IMAGES[part])) {
        if (view === undefined) continue;
        const scheme = name.endsWith("-dark") ? "dark" : "light";
        const file = join(docImages, `${name}.png`);
        await photograph(browser, pictures, {
          width: 1280,
          height: 800,
          scheme,
          shots: [[view, file]],
        });
      }
    }
    if (screenshots === undefined) return;
    const folder = join(screenshots, part);
    await mkdir(folder, { recursive: true });
    const views = part === "outage" ? IN_OUTAGE : (Object.keys(VIEWS) as View[]);
    for (const [width, height] of Object.entries(WIDTHS)) {
      for (const scheme of SCHEMES) {
        const shots = views.map(
          (view) => [view, join(folder, `${view}-${width}-${scheme}.png`)] as const,
        );
        await photograph(browser, pictures, {
          width: Number(width),
          height,
          scheme,
          shots,
          isWhole: true,
        });
      }
    }
  } finally {
    await browser.close();
  }
}

interface Setting {
  readonly width: number;
  readonly height: number;
  readonly scheme: Scheme;
  /** Whether pictures show the whole page, not only the first screen. */
  readonly isWhole?: boolean;
  readonly shots: readonly (readonly [View, string])[];
}

async function photograph(
  browser: Browser,
  { server, token, onPicture, signal }: Pictures,
  { width, height, scheme, shots, isWhole = false }: Setting,
): Promise<void> {
  const context = await browser.newContext({
    locale: "en-US",
    timezoneId: "UTC",
    viewport: { width, height },
    colorScheme: scheme,
    extraHTTPHeaders: { authorization: `Bearer ${token}` },
  });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  for (const [view, file] of shots) {
    signal.throwIfAborted();
    await page.goto(new URL(VIEWS[view], server).href);
    await untilDrawn(page);
    if (view.startsWith("object-")) await openLatestWrite(page);
    // The sticky header belongs to the top of the page.
    if (isWhole) await page.evaluate("window.scrollTo(0, 0)");
    if (view === "palette") await page.keyboard.press("Control+k");
    await page.screenshot({ path: file, fullPage: isWhole && view !== "palette" });
    onPicture(file);
  }
  await context.close();
}

/** Resolves when the page has its data and its charts. */
async function untilDrawn(page: Page): Promise<void> {
  await page.locator("main h1").waitFor();
  const skeletons = page.locator(".skeleton");
  await pollUntil("the page has its data", async () => (await skeletons.count()) === 0);
  // The code of charts is loaded after the first view.
  const empty = page.locator(".plot:not(:has(canvas))");
  await pollUntil("the charts are drawn", async () => (await empty.count()) === 0);
}

async function openLatestWrite(page: Page): Promise<void> {
  // The object is read by a worker.
  const reading = page.getByText("Reading…");
  await pollUntil("the object was read", async () => (await reading.count()) === 0);
  const attempts = page.locator("details.attempt summary");
  const writing = attempts.filter({ hasText: /\d write/ });
  const attempt = ((await writing.count()) > 0 ? writing : attempts).first();
  if ((await attempt.count()) > 0) await attempt.click();
}
