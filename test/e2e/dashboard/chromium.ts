import { defined } from "@konverge/core";
import { readFileSync } from "node:fs";
import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";
import { afterAll, onTestFinished, type TestContext } from "vitest";
import {
  CHROMIUM_ARGS,
  findChromium,
  NO_CHROMIUM,
} from "../../../apps/demo/src/incident/find-chromium.ts";

export const DESKTOP = { viewport: { width: 1440, height: 900 } };
export const MOBILE = { viewport: { width: 360, height: 780 } };

/** A page with its errors and requests. */
export interface WatchedPage {
  readonly page: Page;
  /** Script errors, policy violations, dialogs. */
  readonly troubles: readonly string[];
  /** Distinct addresses requested since the last navigation: pages refresh themselves, on a busy machine more than once per test. */
  readonly requests: readonly string[];
  /** Opens an address after the previous page has ended, whose refresh would else count as a request of the new one. */
  readonly visit: (address: string) => Promise<void>;
}

/** Starts one browser for the tests of a file, with a clean profile for each page. */
export function useChromium(): (
  context: TestContext,
  options?: BrowserContextOptions,
) => Promise<WatchedPage> {
  let browser: Promise<Browser> | undefined;
  afterAll(async () => {
    await (await browser)?.close();
  });
  return async (context, options = DESKTOP) => {
    const executablePath = findChromium();
    if (executablePath === undefined) context.skip(NO_CHROMIUM);
    browser ??= chromium.launch({
      ...defined({ executablePath }),
      args: [...CHROMIUM_ARGS],
    });
    const profile = await (
      await browser
    ).newContext({ locale: "en-US", timezoneId: "UTC", ...options });
    onTestFinished(() => profile.close());
    const page = await profile.newPage();
    page.setDefaultTimeout(300_000);
    const troubles: string[] = [];
    const requests: string[] = [];
    page.on("pageerror", (error) => troubles.push(`error: ${error.message}`));
    page.on("console", (message) => {
      if (message.text().includes("Content Security Policy")) troubles.push(message.text());
    });
    page.on("dialog", (dialog) => {
      troubles.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("request", (request) => {
      if (request.isNavigationRequest()) requests.length = 0;
      if (!requests.includes(request.url())) requests.push(request.url());
    });
    const visit = async (address: string) => {
      await page.goto("about:blank");
      await page.goto(address);
    };
    return { page, troubles, requests, visit };
  };
}

const axe = readFileSync(new URL(import.meta.resolve("axe-core/axe.min.js")), "utf8");

interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly {
    readonly target: readonly string[];
    readonly failureSummary: string;
  }[];
}

/** Returns the serious and critical accessibility violations of the page as text. */
export async function findBarriers(page: Page): Promise<string[]> {
  // The page's policy does not apply to scripts of the debugger.
  await page.evaluate(axe);
  const { violations } = (await page.evaluate("axe.run({ resultTypes: ['violations'] })")) as {
    violations: Violation[];
  };
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id} at ${target.join(" ")}: ${failureSummary}`),
    );
}
