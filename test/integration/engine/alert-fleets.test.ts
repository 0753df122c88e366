import type { BreakerMode } from "@konverge/core";
import { createMetrics, type Metrics } from "@konverge/telemetry";
import { beforeAll, expect, test, type TestContext } from "vitest";
import { alertGroups, BACKLOG_AGE_QUERY } from "../../../apps/cli/src/manifests/alert-rules.ts";
import { openPromql, parseScrape, seriesOf, type Promql } from "../../support/promql.ts";
import { Prometheus } from "../../support/prometheus.ts";

/** Time between two scrapes of the simulated Prometheus, in s. */
const STEP_SECONDS = 30;
const CLUSTERS = ["east", "west"];
const MIB = 2 ** 20;

let promql: Promql | undefined;
let missing = "";
beforeAll(async () => {
  const opened = await openPromql();
  if ("missing" in opened) missing = opened.missing;
  else promql = opened;
});
function engine(context: TestContext): Promql {
  return promql ?? context.skip(missing);
}

/** A process with the metrics of a worker on each cluster, whose state a test changes. */
class Process {
  static #started = 0;
  readonly id = String((Process.#started += 1));
  readonly metrics: Metrics;
  readonly state = {
    leads: false,
    isReady: true,
    breaker: "closed" as BreakerMode,
    redis: true,
    used: 10 * MIB,
    replicas: 1,
    deadLettered: 0,
    headAgeMs: 0,
    changeAgeMs: 0,
    held: [] as readonly string[],
    clockAheadMs: 0,
    sourceFailures: 0,
  };

  constructor(installation: string, role: "all" | "watch" | "work", clusters = CLUSTERS) {
    this.metrics = createMetrics({ version: "1", installation });
    for (const name of clusters) this.#serve(name, role);
  }

  #serve(name: string, role: string): void {
    const metrics = this.metrics.ofCluster(name);
    const { state } = this;
    metrics.observeWorker({ role, isReady: () => state.isReady });
    metrics.observeRestore(() => state.held);
    metrics.addController("pool", {
      concurrency: 1,
      timeoutMs: 60_000,
      slo: { thresholdMs: 30_000, objective: 0.99 },
    });
    metrics.observeQueue("pool", {
      isLeader: () => state.leads,
      counts: async () => {
        if (!state.redis) throw new Error("away");
        const { deadLettered, headAgeMs, changeAgeMs } = state;
        return { waiting: 0, delayed: 0, paused: 0, deadLettered, headAgeMs, changeAgeMs };
      },
    });
    metrics.observeSource({ controller: "pool", source: "feed" }, () => ({
      lagMs: 0,
      failures: state.sourceFailures,
    }));
    metrics.observeServer(async () => {
      if (!state.redis) throw new Error("away");
      const { used, replicas, clockAheadMs } = state;
      return { usedBytes: used, maxBytes: 100 * MIB, replicas, replicaLagBytes: 0, clockAheadMs };
    });
    metrics.observeGuard(name, () => ({
      mode: state.breaker,
      ratePerSecond: 1,
      waiting: 0,
      inFlight: 0,
      asks: 0,
      permits: 0,
      deferred: 0,
    }));
  }
}

/** The metrics of an API process that streams the audit log. */
class ApiProcess {
  static #started = 0;
  readonly id = `api-${(ApiProcess.#started += 1)}`;
  readonly metrics: Metrics;
  readonly lagsMs = { file: 0, http: 0 };
  lost = 0;

  constructor(installation: string) {
    this.metrics = createMetrics({ version: "1", installation });
    const read = async (sink: "file" | "http") => ({ lagMs: this.lagsMs[sink], lost: this.lost });
    this.metrics.observeAuditStream("file", () => read("file"));
    this.metrics.observeAuditStream("http", () => read("http"));
  }
}

/** Ends changes of a process on its first cluster. */
function endChanges({ metrics }: Process, slo: "good" | "bad", count: number): void {
  const none = { queueMs: 0, rateLimitMs: 0, laneMs: 0, conflicts: 0, writes: 1, apiCalls: 1 };
  for (let ended = 0; ended < count; ended += 1) {
    metrics.ofCluster("east").attemptFinished({
      ...none,
      controller: "pool",
      outcome: "done",
      durationMs: 1,
      convergence: undefined,
      slo,
      retried: false,
      timedOut: false,
      fenced: false,
    });
  }
}

const groupsOf = (installation: string, clusters = CLUSTERS) =>
  alertGroups({ installation, clusters, runbooks: "https://runbooks.example" });
const GROUPS = [...groupsOf("shop"), ...groupsOf("bank")];

/** Scrapes processes at a fixed interval. */
class Scraper {
  readonly #prometheus: Prometheus;

  constructor(found: Promql) {
    this.#prometheus = new Prometheus(found, GROUPS);
  }

  /** Scrapes for this time, and returns the alerts that fired at its end, each as `alert installation/cluster`. */
  async run(seconds: number, processes: readonly (Process | ApiProcess)[]): Promise<string[]> {
    let firing: string[] = [];
    for (let passed = 0; passed < seconds; passed += STEP_SECONDS) {
      const scrapes = processes.map(
        async ({ id, metrics }) => [id, parseScrape(await metrics.text())] as const,
      );
      const alerts = await this.#prometheus.take(STEP_SECONDS, new Map(await Promise.all(scrapes)));
      firing = alerts.map(
        ({ alert, installation, cluster }) => `${alert} ${installation}/${cluster}`,
      );
    }
    return [...new Set(firing)].toSorted();
  }
}

function fleet(installation: string): [leader: Process, follower: Process] {
  const [leader, follower] = [new Process(installation, "all"), new Process(installation, "all")];
  leader.state.leads = true;
  return [leader, follower];
}

test("alerts only for the installation and the cluster that has the problem", async (context) => {
  const prometheus = new Scraper(engine(context));
  const bank = fleet("bank");
  const east = new Process("shop", "all", ["east"]);
  const west = new Process("shop", "all", ["west"]);
  east.state.leads = west.state.leads = true;
  const all = [...bank, east, west];
  expect(await prometheus.run(180, all)).toEqual([]);
  expect(await prometheus.run(180, [...bank, east])).toEqual(["KonvergeNoWorker shop/west"]);
  west.state.leads = false;
  expect(await prometheus.run(180, all)).toEqual(["KonvergeNoLeader shop/west"]);
  west.state.leads = true;
  west.state.redis = false;
  expect(await prometheus.run(120, all)).toEqual(["KonvergeRedisUnavailable shop/west"]);
  west.state.redis = true;
  west.state.deadLettered = 3;
  expect(await prometheus.run(360, all)).toEqual(["KonvergeDeadLetters shop/west"]);
  west.state.deadLettered = 0;
  expect(await prometheus.run(30, all)).toEqual([]);
});

test("alerts on watchers without workers", async (context) => {
  const prometheus = new Scraper(engine(context));
  const [watcher, worker] = [new Process("shop", "watch"), new Process("shop", "work")];
  watcher.state.leads = true;
  const bank = fleet("bank");
  expect(await prometheus.run(180, [...bank, watcher, worker])).toEqual([]);
  expect(await prometheus.run(180, [...bank, watcher])).toEqual([
    "KonvergeNoWorker shop/east",
    "KonvergeNoWorker shop/west",
  ]);
});

test("an API without workers does not hide that they are missing", async (context) => {
  const prometheus = new Scraper(engine(context));
  const api = new Process("shop", "all", []);
  expect(await prometheus.run(180, [api, ...fleet("bank")])).toEqual([
    "KonvergeNoWorker shop/east",
    "KonvergeNoWorker shop/west",
  ]);
});

test("no alert fires at a rolling deployment with a new leader for each worker", async (context) => {
  const prometheus = new Scraper(engine(context));
  const bank = fleet("bank");
  let [leader, follower] = fleet("shop");
  expect(await prometheus.run(60, [...bank, leader, follower])).toEqual([]);
  for (let rolled = 0; rolled < 3; rolled += 1) {
    const next = new Process("shop", "all");
    next.state.isReady = false;
    expect(await prometheus.run(30, [...bank, leader, follower, next])).toEqual([]);
    next.state.isReady = true;
    leader.state.leads = false;
    leader.state.isReady = false;
    // The old leader drains, and the next one is elected.
    expect(await prometheus.run(30, [...bank, leader, follower, next])).toEqual([]);
    follower.state.leads = true;
    // The resync of many objects takes minutes.
    follower.state.headAgeMs = 600_000;
    expect(await prometheus.run(120, [...bank, follower, next])).toEqual([]);
    [leader, follower] = [follower, next];
  }
  expect(await prometheus.run(720, [...bank, leader, follower])).toEqual([]);
  leader.state.changeAgeMs = 90_000;
  expect(await prometheus.run(660, [...bank, leader, follower])).toEqual([
    "KonvergeBacklog shop/east",
    "KonvergeBacklog shop/west",
  ]);
});

test("alerts if many changes miss the objective, and not for a few of a deployment", async (context) => {
  const prometheus = new Scraper(engine(context));
  const [leader, follower] = fleet("shop");
  const all = [leader, follower, ...fleet("bank")];
  const run = async (steps: number, good: number, bad: number) => {
    let firing: string[] = [];
    for (let step = 0; step < steps; step += 1) {
      endChanges(leader, "good", good);
      endChanges(follower, "bad", bad);
      firing = await prometheus.run(STEP_SECONDS, all);
    }
    return firing;
  };
  expect(await run(6, 10, 0)).toEqual([]);
  // Four of few changes are late while a leader is elected.
  expect(await run(1, 0, 4)).toEqual([]);
  expect(await run(2, 1, 0)).toEqual([]);
  expect(await run(5, 1, 9)).toEqual([
    "KonvergeSloFastBurn shop/east",
    "KonvergeSloSlowBurn shop/east",
  ]);
  // While no call is possible, only its own alert fires.
  for (const { state } of [leader, follower]) state.breaker = "open";
  expect(await prometheus.run(150, all)).toEqual([
    "KonvergeApiServerProtected shop/east",
    "KonvergeApiServerProtected shop/west",
  ]);
  for (const { state } of [leader, follower]) state.breaker = "closed";
  const firing = await run(1, 20_000, 0);
  expect(firing).not.toContain("KonvergeSloFastBurn shop/east");
});

test("an outage of the API server has one alert, which names it", async (context) => {
  const prometheus = new Scraper(engine(context));
  const shop = fleet("shop");
  const all = [...shop, ...fleet("bank")];
  expect(await prometheus.run(60, all)).toEqual([]);
  for (const { state } of shop) {
    Object.assign(state, { breaker: "open", leads: false, changeAgeMs: 900_000 });
  }
  expect(await prometheus.run(900, all)).toEqual([
    "KonvergeApiServerProtected shop/east",
    "KonvergeApiServerProtected shop/west",
  ]);
  for (const { state } of shop) Object.assign(state, { breaker: "closed", changeAgeMs: 0 });
  // Until a leader is elected.
  expect(await prometheus.run(60, all)).toEqual([]);
});

test("alerts on the memory and the replicas of Redis", async (context) => {
  const prometheus = new Scraper(engine(context));
  const [leader, follower] = fleet("shop");
  const all = [leader, follower, ...fleet("bank")];
  expect(await prometheus.run(60, all)).toEqual([]);
  for (const { state } of [leader, follower]) Object.assign(state, { used: 85 * MIB, replicas: 0 });
  expect(await prometheus.run(960, all)).toEqual(
    ["KonvergeRedisMemory", "KonvergeReplicaLost"].flatMap((alert) =>
      CLUSTERS.map((name) => `${alert} shop/${name}`),
    ),
  );
  for (const { state } of [leader, follower]) Object.assign(state, { used: 95 * MIB });
  expect(await prometheus.run(360, all)).toContain("KonvergeRedisFull shop/east");
});

test("alerts on a restored Redis that is held, and on a worker with a wrong clock", async (context) => {
  const prometheus = new Scraper(engine(context));
  const [leader, follower] = fleet("shop");
  const all = [leader, follower, ...fleet("bank")];
  for (const { state } of [leader, follower]) state.held = ["keys", "runs"];
  follower.state.clockAheadMs = -3_000;
  expect(await prometheus.run(400, all)).toEqual(
    ["KonvergeClockSkew", "KonvergeRestoreHeld"].flatMap((alert) =>
      CLUSTERS.map((name) => `${alert} shop/${name}`),
    ),
  );
  for (const { state } of [leader, follower]) state.held = [];
  follower.state.clockAheadMs = 1_000;
  expect(await prometheus.run(30, all)).toEqual([]);
});

test("alerts on a source that fails repeatedly, until it recovers", async (context) => {
  const prometheus = new Scraper(engine(context));
  const [leader, follower] = fleet("shop");
  const all = [leader, follower, ...fleet("bank")];
  leader.state.sourceFailures = 2;
  expect(await prometheus.run(330, all)).toEqual([]);
  leader.state.sourceFailures = 3;
  expect(await prometheus.run(240, all)).toEqual([]);
  expect(await prometheus.run(120, all)).toEqual(
    CLUSTERS.map((name) => `KonvergeSourceFailing shop/${name}`),
  );
  leader.state.sourceFailures = 0;
  expect(await prometheus.run(30, all)).toEqual([]);
});

test("alerts on audit entries that a sink does not receive, and not for those of a deployment", async (context) => {
  const prometheus = new Scraper(engine(context));
  const bank = [...fleet("bank"), new ApiProcess("bank")];
  const [one, two] = [new ApiProcess("shop"), new ApiProcess("shop")];
  const all = [...bank, ...fleet("shop"), one, two];
  expect(await prometheus.run(60, all)).toEqual([]);
  // A new process reads what the command line has written while none ran, and delivers it.
  const next = new ApiProcess("shop");
  next.lagsMs.http = 3_600_000;
  const rolled = [...bank, ...fleet("shop"), next];
  expect(await prometheus.run(240, rolled)).toEqual([]);
  next.lagsMs.http = 0;
  expect(await prometheus.run(600, rolled)).toEqual([]);
  next.lagsMs.file = 320_000;
  expect(await prometheus.run(270, rolled)).toEqual([]);
  expect(await prometheus.run(60, rolled)).toEqual(["KonvergeAuditNotDelivered shop/"]);
  next.lagsMs.file = 0;
  expect(await prometheus.run(30, rolled)).toEqual([]);
  next.lost = 2;
  expect(await prometheus.run(270, rolled)).toEqual([]);
  expect(await prometheus.run(60, rolled)).toEqual(["KonvergeAuditNotDelivered shop/"]);
  // Another process reports the same total.
  const another = new ApiProcess("shop");
  another.lost = 2;
  expect(await prometheus.run(3_600, [...rolled, another])).toEqual([]);
});

test("the autoscaling query ignores resyncs, other installations and protected clusters", async (context) => {
  const found = engine(context);
  const east = new Process("shop", "all", ["east"]);
  const west = new Process("shop", "all", ["west"]);
  const [bank] = fleet("bank");
  for (const { state } of [east, west, bank]) state.leads = true;
  east.state.headAgeMs = 300_000;
  east.state.changeAgeMs = 4_000;
  west.state.changeAgeMs = 20_000;
  bank.state.changeAgeMs = 900_000;
  const query = BACKLOG_AGE_QUERY.replaceAll("INSTALLATION", "shop");
  const ask = async () => {
    const scrapes = [east, west, bank].map(async ({ metrics }, at) =>
      seriesOf([parseScrape(await metrics.text())], STEP_SECONDS, String(at)),
    );
    const [samples = []] = await found.evaluate((await Promise.all(scrapes)).flat(), [query]);
    return samples.map(({ value }) => value);
  };
  expect(await ask()).toEqual([20]);
  west.state.breaker = "open";
  expect(await ask()).toEqual([4]);
  // Without a result the autoscaler keeps the number of workers.
  east.state.breaker = "isolated";
  expect(await ask()).toEqual([]);
});
