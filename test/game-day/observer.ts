import { execFile } from "node:child_process";
import { overviewSchema } from "@konverge/contracts";
import { Prometheus, type Alert } from "../support/prometheus.ts";
import { parseScrape, type Promql, type Scrape } from "../support/promql.ts";
import type { Installation } from "./installation.ts";

/** What an operator of one installation sees: codes of problems, or the error code of the API. */
export interface Sight {
  readonly alerts: readonly string[];
  readonly status: readonly string[];
  readonly dashboard: readonly string[];
}

/** Interval of the scrapes while something changes. The time of Prometheus is then the real time. */
const SCRAPE_EVERY_MS = 1_000;
/** Time between two scrapes of a state that does not change, in s. Such a state needs no waiting. */
const STEADY_SECONDS = 30;
const NONE = "none";

/** Scrapes all workers of several installations, and reads `konverge status` and the API of the dashboard. */
export class Observer implements AsyncDisposable {
  readonly #prometheus: Prometheus;
  readonly #installations: readonly Installation[];
  #lastMs = performance.now();
  #firing: readonly Alert[] = [];
  /** Alerts that fired since the last call of `takeFired`. */
  #fired = new Map<string, Alert>();
  #isClosed = false;
  #isSteady = false;
  #turn: Promise<void> = Promise.resolve();
  readonly #loop: Promise<void>;

  constructor(promql: Promql, installations: readonly Installation[]) {
    this.#installations = installations;
    this.#prometheus = new Prometheus(
      promql,
      installations.flatMap(({ alertGroups }) => alertGroups),
    );
    this.#loop = this.#scrapeRegularly();
  }

  async #scrapeRegularly(): Promise<void> {
    while (!this.#isClosed) {
      await new Promise((resolve) => setTimeout(resolve, SCRAPE_EVERY_MS));
      if (this.#isSteady) continue;
      await this.#scrape((performance.now() - this.#lastMs) / 1_000);
    }
  }

  async #scrape(seconds: number): Promise<void> {
    const before = this.#turn;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#turn = promise;
    try {
      await before;
      this.#lastMs = performance.now();
      const workers = this.#installations.flatMap((one) => [...one.workers]);
      const scrapes = await Promise.all(workers.map(scrapeOf));
      this.#firing = await this.#prometheus.take(seconds, new Map(scrapes.flat()));
      for (const alert of this.#firing) this.#fired.set(JSON.stringify(alert), alert);
    } finally {
      resolve();
    }
  }

  /** Lets time pass for Prometheus in which the state does not change. */
  async pass(minutes: number): Promise<void> {
    this.#isSteady = true;
    try {
      for (let passed = 0; passed < minutes * 60; passed += STEADY_SECONDS) {
        await this.#scrape(STEADY_SECONDS);
      }
    } finally {
      this.#isSteady = false;
      this.#lastMs = performance.now();
    }
  }

  /** Returns the values of an expression at the last scrape. */
  async values(expression: string): Promise<number[]> {
    return await this.#prometheus.values(expression);
  }

  /** Returns what an operator of the installation sees now. */
  async look(installation: Installation): Promise<Sight> {
    const [status, dashboard] = await Promise.all([
      statusOf(installation),
      dashboardOf(installation),
    ]);
    const alerts = this.#firing.filter((alert) => alert.installation === installation.name);
    return { alerts: unique(alerts.map(({ alert }) => alert)), status, dashboard };
  }

  /** Returns the alerts of the installation that have fired since its last call. */
  takeFired(installation: Installation): string[] {
    const own = [...this.#fired].filter(([, alert]) => alert.installation === installation.name);
    for (const [id] of own) this.#fired.delete(id);
    return unique(own.map(([, { alert }]) => alert));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#loop;
  }
}

async function scrapeOf({
  name,
  url,
}: {
  readonly name: string;
  readonly url: string;
}): Promise<(readonly [string, Scrape])[]> {
  try {
    const response = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(5_000) });
    return [[name, parseScrape(await response.text())]];
  } catch {
    // A target that does not answer has no series, as in Prometheus.
    return [];
  }
}

async function dashboardOf({ service }: Installation): Promise<string[]> {
  const { ok, text } = await service.call("/v1/overview");
  const body: unknown = JSON.parse(text);
  if (!ok) return [(body as { readonly code: string }).code];
  return codesOf(body);
}

/** Runs `konverge status` against the API, as an operator does. */
async function statusOf(installation: Installation): Promise<string[]> {
  const server = [...installation.apis][0]?.url ?? "";
  const args = ["--conditions=@konverge/source", "apps/cli/src/main.ts", "status", "-o", "json"];
  const { stdout, stderr } = await new Promise<{ stdout: string; stderr: string }>((resolve) => {
    execFile(
      process.execPath,
      [...args, "--server", server],
      { env: installation.environment() },
      // A problem of level error has an exit code, and the document all the same.
      (_, out, err) => resolve({ stdout: out, stderr: err }),
    );
  });
  if (stdout !== "") return codesOf(JSON.parse(stdout));
  return [/Redis/.test(stderr) ? "redis_unavailable" : stderr.trim()];
}

function codesOf(document: unknown): string[] {
  const { problems } = overviewSchema.parse(document);
  return unique(problems.map(({ code }) => code));
}

function unique(names: readonly string[]): string[] {
  return [...new Set(names)].toSorted();
}

export function listOf(names: readonly string[]): string {
  return names.length === 0 ? NONE : names.join(", ");
}
