import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleepMs } from "node:timers/promises";
import { createApi, openQueueAccess } from "@konverge/api";
import { createClient, type Client } from "@konverge/client";
import { createLocalGate } from "@konverge/core";
import { openGuardControl } from "@konverge/guard";
import { createKubeClient, loadKubeCredentials } from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import { createMetrics } from "@konverge/telemetry";
import type { FleetPlan } from "../../apps/cli/src/fleet/fleet-plan.ts";
import { planFleet } from "../../apps/cli/src/fleet/plan-fleet.ts";
import { buildAsShipped } from "./as-shipped.ts";
import { AS_DEPLOYED } from "./controller-arms.ts";
import { startEmbeddedServer } from "./embedded-server.ts";
import { figureOf, percentile, rateOf, round2, type BenchOptions, type Figure } from "./measure.ts";
import { startOwnRedis, type OwnRedis } from "./own-redis.ts";
import { startPeerProcess } from "./peer-process.ts";
import type { PlanWorkerConfig } from "./plan-worker.ts";

const ROUNDS = 3;
const WIDTH = 16;
const MAX_SECONDS = 60;
const MAX_GROWTH = 1.05;
const READS: ReadonlySet<string> = new Set(["get", "list", "watch"]);
const namespace = "default";

interface Round {
  readonly seconds: number;
  readonly calls: number;
  readonly commands: number;
  readonly mutations: number;
  /** The p99 of live changes in ms, while the fleet is planned and before. */
  readonly planned: number;
  readonly alone: number;
}

/**
 * Measures `konverge plan --all` over one worker: the time, the calls and commands per object, and the live changes of another
 * controller of the worker meanwhile. The audit log of the API server counts the mutations by plans.
 */
export async function benchPlan({ log, objects }: BenchOptions): Promise<Figure[]> {
  await using cleanup = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), "konverge-bench-plan-"));
  cleanup.defer(() => rmSync(folder, { recursive: true, force: true }));
  const auditLog = join(folder, "audit.jsonl");
  const redis = cleanup.use(await startOwnRedis(log));
  const { kubeconfigPath } = cleanup.use(await startEmbeddedServer({ auditLog }));
  await createObjects(kubeconfigPath, objects);
  const prefix = `bench-${randomUUID()}`;
  const config: PlanWorkerConfig = {
    redisUrl: redis.url,
    kubeconfigPath,
    prefix,
    objects,
    times: `${prefix}-times`,
  };
  const programs = await buildAsShipped(["plan-worker.ts"]);
  const program = programs["plan-worker.ts"];
  const args = [...AS_DEPLOYED, program, JSON.stringify(config)];
  const worker = startPeerProcess(process.execPath, args);
  cleanup.defer(() => worker.stop());
  await worker.ready;
  const client = openClient(cleanup, redis.url, prefix);
  const rounds: Round[] = [];
  for (let round = 0; round <= ROUNDS; round += 1) {
    const found = await measure(client, { redis, auditLog, objects, times: config.times });
    log(
      `plan: ${JSON.stringify(found, (_, value) => (typeof value === "number" ? round2(value) : value))}`,
    );
    // The first round is a warm-up.
    if (round > 0) rounds.push(found);
  }
  return figuresOf(rounds, objects);
}

interface Measuring {
  readonly redis: OwnRedis;
  readonly auditLog: string;
  readonly objects: number;
  readonly times: string;
}

async function measure(
  client: Client,
  { redis: own, auditLog, objects, times }: Measuring,
): Promise<Round> {
  const takeTimes = async () => {
    const found = await own.redis.lrange(times, 0, -1);
    await own.redis.del(times);
    return percentile(found.map(Number), 0.99);
  };
  const plan = async () => {
    const startMs = performance.now();
    const fleet = await planAll(client);
    if (fleet.planned !== objects) throw new Error(`${fleet.planned} of ${objects} were planned`);
    return (performance.now() - startMs) / 1_000;
  };
  const audited = callsOf(auditLog).length;
  const before = (await own.totals()).commands;
  await takeTimes();
  const seconds = await plan();
  const commands = (await own.totals()).commands - before;
  const planned = await takeTimes();
  const calls = callsOf(auditLog).slice(audited);
  // As long as the plans, without them.
  await sleepMs(seconds * 1_000);
  const idleCommands = (await own.totals()).commands - before - commands;
  const alone = await takeTimes();
  return {
    seconds,
    planned,
    alone,
    calls: calls.length / objects,
    commands: (commands - idleCommands) / objects,
    mutations: calls.filter(isMutation).length,
  };
}

async function planAll(client: Client): Promise<FleetPlan> {
  return await planFleet(
    client,
    { cluster: "default", controller: "planned" },
    { progress: undefined, timeoutMs: 60_000, onPlanned: () => undefined },
  );
}

interface AuditedCall {
  readonly verb: string;
  readonly requestURI: string;
  readonly userAgent?: string;
}

/** The calls of the worker. Leases belong to leader election, which is no part of a plan. */
function callsOf(auditLog: string): AuditedCall[] {
  return readFileSync(auditLog, "utf8")
    .split("\n")
    .filter((line) => line.includes('"userAgent":"konverge-worker/'))
    .map((line) => JSON.parse(line) as AuditedCall)
    .filter(({ requestURI }) => !requestURI.includes("/leases"));
}

function isMutation({ verb, requestURI }: AuditedCall): boolean {
  return !READS.has(verb) && !requestURI.includes("dryRun=All");
}

async function createObjects(kubeconfigPath: string, objects: number): Promise<void> {
  const client = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigPath }),
    gate: createLocalGate({ ratePerSecond: 1e6, burst: 1e6 }),
    userAgent: "konverge-bench",
  });
  await rateOf(objects, WIDTH, async (_, n) => {
    const metadata = { namespace, name: `planned-${n}`, labels: { bench: "planned" } };
    await client.create(ConfigMap, { metadata });
  });
  await client.close();
}

function openClient(cleanup: AsyncDisposableStack, url: string, prefix: string): Client {
  const fail = (error: unknown) => {
    throw error;
  };
  const access = openQueueAccess({ redis: { url }, prefix, onError: fail });
  cleanup.defer(() => access.close());
  const guards = openGuardControl({ redis: { url }, prefix });
  cleanup.defer(() => guards.close());
  const api = createApi({
    access,
    guards,
    metrics: createMetrics({ version: "bench" }),
    token: undefined,
    inProcess: { user: "bench" },
    cluster: "default",
    onError: fail,
  });
  cleanup.defer(() => api.close());
  return createClient({
    server: "http://localhost",
    fetch: async (request) => await api.fetch(request),
  });
}

function figuresOf(rounds: readonly Round[], objects: number): Figure[] {
  const valuesOf = (name: keyof Round) => rounds.map((round) => round[name]);
  const what = { suite: "plan", case: `plan of ${objects} objects` };
  const most = (goal: number | null) => ({ goal, goalIs: "most" as const });
  return [
    figureOf({
      ...what,
      metric: "time",
      unit: "s",
      ours: valuesOf("seconds"),
      ...most(MAX_SECONDS),
    }),
    figureOf({ ...what, metric: "API calls per object", unit: "", ours: valuesOf("calls") }),
    figureOf({
      ...what,
      metric: "Redis commands per object",
      unit: "",
      ours: valuesOf("commands"),
    }),
    figureOf({ ...what, metric: "mutations", unit: "", ours: valuesOf("mutations"), ...most(0) }),
    figureOf({
      ...what,
      metric: "p99 of live changes",
      unit: "ms",
      ours: valuesOf("planned"),
      peer: { name: "without plans", values: valuesOf("alone") },
      ...most(MAX_GROWTH),
    }),
  ];
}
