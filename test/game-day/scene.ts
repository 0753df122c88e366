import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Promql } from "../support/promql.ts";
import { until } from "../support/until.ts";
import { Installation, type InstallationOptions } from "./installation.ts";
import { listOf, Observer, type Sight } from "./observer.ts";
import type { Plane } from "./plane.ts";
import { Traffic } from "./traffic.ts";

/** What has to be visible after a step: all alerts that fire, and all problems except those in `may`. */
export interface Expected {
  /** Alerts that fire. */
  readonly alerts?: readonly string[];
  /** Codes of `konverge status` and of the API of the dashboard. */
  readonly problems?: readonly string[];
  /** Alerts that may have fired since the last step, although they do not fire now. */
  readonly transient?: readonly string[];
  /** Problems that may be listed as well, such as those of the past minutes. */
  readonly may?: readonly string[];
  /** Time that the state lasts before it is compared. */
  readonly minutes?: number;
}

/** A line of the report. */
export interface Row {
  readonly happened: string;
  readonly sight: Sight;
  /** Differences between what happened and what was visible. */
  readonly differences: readonly string[];
}

export interface SceneOptions {
  readonly name: string;
  readonly plane: Plane;
  readonly promql: Promql;
  readonly log: (line: string) => void;
}

const DEADLINE_MS = 60_000;
const LAST_LINES = 3;

/** The stage of one disaster: its installations with traffic, and the report of what was visible. */
export class Scene implements AsyncDisposable {
  readonly rows: Row[] = [];
  /** The API server of its installations. */
  plane: Plane;
  readonly #name: string;
  readonly #promql: Promql;
  readonly log: (line: string) => void;
  readonly #cleanup = new AsyncDisposableStack();
  #observer: Observer | undefined;
  #folder: string | undefined;
  readonly #expectedAlerts = new Map<Installation, readonly string[]>();
  readonly #installations: Installation[] = [];

  constructor({ name, plane, promql, log }: SceneOptions) {
    this.#name = name;
    this.plane = plane;
    this.#promql = promql;
    this.log = log;
  }

  /** Ends with the scene, in the opposite order. */
  defer(end: () => Promise<unknown>): void {
    this.#cleanup.defer(async () => void (await end()));
  }

  async folder(): Promise<string> {
    if (this.#folder === undefined) {
      const folder = await mkdtemp(join(tmpdir(), "konverge-game-day-"));
      this.#cleanup.defer(() => rm(folder, { recursive: true, force: true }));
      this.#folder = folder;
    }
    return this.#folder;
  }

  /** Creates an installation without processes, with a namespace of its name. */
  async install(
    options: Pick<InstallationOptions, "redisUrl" | "env"> & {
      readonly name?: string;
      readonly kubeconfig?: string;
    },
  ): Promise<Installation> {
    const { name = this.#name, kubeconfig = this.plane.kubeconfig } = options;
    await this.plane.createNamespace(name);
    const folder = await this.folder();
    const own = { ...options, name, namespace: name, kubeconfig, folder };
    const installation = this.#cleanup.use(new Installation(own));
    this.#installations.push(installation);
    return installation;
  }

  /** Returns the users of an installation. Its objects exist. */
  async trafficFor(installation: Installation): Promise<Traffic> {
    const traffic = this.#cleanup.use(new Traffic(installation, this.plane));
    await traffic.createObjects();
    return traffic;
  }

  /** Scrapes and evaluates the alerts from now on. */
  observe(...installations: readonly Installation[]): Observer {
    this.#observer = this.#cleanup.use(new Observer(this.#promql, installations));
    return this.#observer;
  }

  /** Compares what is visible of the installation with what happened, and adds a line to the report. */
  async compare(
    installation: Installation,
    happened: string,
    expected: Expected = {},
  ): Promise<void> {
    const observer = this.#observer;
    if (observer === undefined) throw new Error("observe() comes first");
    await observer.pass(expected.minutes ?? 0);
    let sight = await observer.look(installation);
    await until(
      "the sight is as expected",
      async () => {
        sight = await observer.look(installation);
        return differencesOf(sight, expected).length === 0;
      },
      DEADLINE_MS,
    ).catch(() => undefined);
    const { alerts = [], transient = [] } = expected;
    const known = new Set([
      ...alerts,
      ...transient,
      ...(this.#expectedAlerts.get(installation) ?? []),
    ]);
    const surplus = observer.takeFired(installation).filter((alert) => !known.has(alert));
    this.#expectedAlerts.set(installation, alerts);
    const differences = [
      ...differencesOf(sight, expected),
      ...surplus.map((alert) => `${alert} fired although its cause did not exist`),
    ];
    this.#add({ happened, sight, differences });
  }

  /** Adds a line about facts that need no comparison of alerts. */
  fact(happened: string, differences: readonly string[]): void {
    this.#add({ happened, sight: { alerts: [], status: [], dashboard: [] }, differences });
  }

  /** Logs the last lines of all processes, for a disaster that could not be played to its end. */
  logProcesses(): void {
    for (const { workers, apis } of this.#installations) {
      for (const { name, lines } of [...workers, ...apis]) {
        const problems = lines.filter((line) => !line.includes('"level":"info"'));
        for (const line of problems.slice(-LAST_LINES)) this.log(`${name}: ${line}`);
      }
    }
  }

  #add(row: Row): void {
    this.rows.push(row);
    const { alerts, status, dashboard } = row.sight;
    this.log(
      `${row.happened}: alerts ${listOf(alerts)}; status ${listOf(status)}; dashboard ${listOf(dashboard)}`,
    );
    for (const difference of row.differences) this.log(`  DIFFERENCE: ${difference}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cleanup.disposeAsync();
  }
}

function differencesOf(
  { alerts, status, dashboard }: Sight,
  { alerts: wanted = [], problems = [], may = [] }: Expected,
): string[] {
  const listed = (title: string, found: readonly string[]) =>
    compareLists(
      title,
      found.filter((code) => problems.includes(code) || !may.includes(code)),
      problems,
    );
  return [
    ...compareLists("alerts", alerts, wanted),
    ...listed("status", status),
    ...listed("dashboard", dashboard),
  ];
}

function compareLists(
  title: string,
  found: readonly string[],
  wanted: readonly string[],
): string[] {
  const missing = wanted.filter((name) => !found.includes(name));
  const surplus = found.filter((name) => !wanted.includes(name));
  return [
    ...missing.map((name) => `${title}: ${name} is missing`),
    ...surplus.map((name) => `${title}: ${name} is listed without a cause`),
  ];
}
