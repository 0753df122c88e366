import { defined, KonvergeError, sleepMs } from "@konverge/core";
import { startProcess, type LocalProcess, type LocalStack } from "@konverge/local-stack";
import { countAuditedCalls } from "./call-counter.ts";
import { requestReconcile } from "./http-requests.ts";
import { planLoad, replicasFor, type LoadStep } from "./load-plan.ts";
import { findLostUpdates, isConverged, type LostUpdate } from "./lost-updates.ts";
import { readControllerWrites } from "./object-history.ts";
import type { WriterReport } from "./outside-writer.ts";
import { playOutage, type OutageFigures } from "./outage.ts";
import { pollUntil } from "./poll-until.ts";
import { readWorkerTotals } from "./worker-metrics.ts";
import { DEMO_SCRIPT } from "./scripts.ts";
import { MACHINES, POOLS, SCALERS, type World } from "./world.ts";

export interface ActOptions {
  readonly name: "lazy" | "pro";
  readonly stack: LocalStack;
  readonly world: World;
  readonly workers: number;
  /** One configuration file per operator; every operator gets its own workers. */
  readonly configs: readonly string[];
  readonly seed: number;
  readonly pools: number;
  readonly steps: number;
  readonly stepMs: number;
  readonly blindWriter: boolean;
  readonly outage: boolean;
  readonly logs: string | undefined;
  readonly print: (line: string) => void;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
}

/** One act of the demo's JSON document. */
export interface ActFigures {
  readonly name: string;
  readonly reconciles: number;
  readonly apiCalls: number;
  readonly writes: number;
  readonly conflicts: number;
  readonly callsPerWrite: number;
  readonly jobRetries: number;
  /** From the last change of the load until every controller agrees. */
  readonly convergedMs: number;
  readonly lostUpdates: number;
  readonly converged: boolean;
  readonly outage?: OutageFigures;
}

export interface PlayedAct {
  readonly figures: ActFigures;
  readonly lost: readonly LostUpdate[];
  readonly outsideConflicts: number;
  readonly pools: readonly string[];
  /** Takes the act's objects away, then its workers: in this order, so that the workers see the deletions. */
  end(): Promise<void>;
}

const WORKER_AGENT = "konverge-worker";
const CONVERGE_MS = 30_000;

export async function playAct(options: ActOptions): Promise<PlayedAct> {
  const { name, stack, world, print } = options;
  const pools = Array.from(
    { length: options.pools },
    (_, n) => `${name}-${String(n).padStart(2, "0")}`,
  );
  const plan = planLoad(
    pools.map((pool) => pool.slice(name.length)),
    { seed: options.seed, steps: options.steps, intervalMs: options.stepMs },
  ).map((step) => withPrefix(step, name));
  const first = plan[0];
  const last = plan.at(-1);
  if (first === undefined || last === undefined) {
    throw new KonvergeError("demo_failed", "the load plan is empty; ask for at least one step");
  }

  const workers = startWorkers(options);
  let writer: LocalProcess | undefined;
  /** The objects go first, so that the workers see the deletions. */
  const end = async () => {
    await writer?.stop();
    await world.clear();
    await Promise.all(workers.map((worker) => worker.stop()));
  };
  try {
    const metrics = await Promise.all(
      workers.map(async (worker) => String((await worker.logged("worker ready"))["metricsUrl"])),
    );
    print(`${workers.length} workers are up (pids ${workers.map(({ pid }) => pid).join(", ")})`);
    const fromMs = Date.now();
    await world.populate(pools, first.loads);
    await waitConverged(options, pools, first);

    writer = startProcess({
      script: DEMO_SCRIPT,
      args: [
        "outside-writer",
        `--namespace=${world.namespace}`,
        `--pools=${pools.join(",")}`,
        `--seed=${options.seed}`,
        ...(options.blindWriter ? ["--blind"] : []),
      ],
      env: { KUBECONFIG: stack.apiServer.kubeconfigPath },
      logs: options.logs,
    });
    await writer.logged("writer started");
    let startedMs = performance.now();
    let outage: Awaited<ReturnType<typeof playOutage>> | undefined;
    for (const [index, step] of plan.entries()) {
      await sleepMs(Math.max(0, startedMs + step.atMs - performance.now()), options.signal);
      await Promise.all([world.setLoads(step.loads), requestOverHttp(options, step)]);
      print(`load step ${index + 1} of ${plan.length}`);
      if (!options.outage || index !== Math.floor(plan.length / 2)) continue;
      outage = await playOutage({ ...options, pools, metrics, writer });
      startedMs += outage.tookMs;
    }
    const lastStepMs = performance.now();
    // The fight goes on for one more step, then the outside writer leaves.
    await sleepMs(options.stepMs, options.signal);
    const report = await stopWriter(writer);
    const converged = await waitConverged(options, pools, last);
    const convergedMs = Math.round(performance.now() - lastStepMs);
    const lost = await checkLost(options, pools, report);
    const outageFigures = await outage?.settle();
    const totals = await readWorkerTotals(metrics.filter((_, index) => workers[index]?.alive));
    const apiCalls =
      stack.apiServer.auditLog === undefined
        ? totals.apiCalls
        : await countAuditedCalls(stack.apiServer.auditLog, {
            agent: WORKER_AGENT,
            fromMs,
            toMs: Date.now(),
          });
    return {
      figures: {
        name,
        reconciles: totals.reconciles,
        apiCalls,
        writes: totals.writes,
        conflicts: totals.conflicts,
        callsPerWrite: Math.round((apiCalls / Math.max(1, totals.writes)) * 100) / 100,
        jobRetries: totals.jobRetries,
        convergedMs,
        lostUpdates: lost.length,
        converged,
        ...defined({ outage: outageFigures }),
      },
      lost,
      outsideConflicts: report.conflicts,
      pools,
      end,
    };
  } catch (error) {
    await end();
    throw error;
  }
}

function startWorkers({
  name,
  stack,
  world,
  workers,
  configs,
  outage,
}: ActOptions): LocalProcess[] {
  return configs.flatMap((config) =>
    Array.from({ length: workers }, () =>
      stack.start(["worker", "--config", config], {
        KONVERGE_METRICS_PORT: "0",
        KONVERGE_CONFLICT_RETRY: name === "lazy" ? "job" : "both",
        KONVERGE_LEASE_NAMESPACE: world.namespace,
        // A worker that is killed must be missed soon in a story of a minute.
        KONVERGE_LEASE_DURATION: "4s",
        ...(outage ? { KONVERGE_REQUEST_TIMEOUT: "2s" } : {}),
      }),
    ),
  );
}

function withPrefix(step: LoadStep, name: string): LoadStep {
  return {
    ...step,
    loads: Object.fromEntries(
      Object.entries(step.loads).map(([pool, load]) => [`${name}${pool}`, load]),
    ),
    httpRequests: step.httpRequests.map((pool) => `${name}${pool}`),
  };
}

async function requestOverHttp({ stack, world }: ActOptions, step: LoadStep): Promise<void> {
  await Promise.all(
    step.httpRequests.map((name) =>
      requestReconcile(stack.apiUrl, { namespace: world.namespace, name }),
    ),
  );
}

async function stopWriter(writer: LocalProcess): Promise<WriterReport> {
  const done = writer.logged("writer done");
  await writer.stop();
  const { edits, labels, conflicts } = await done;
  return { edits, labels, conflicts } as WriterReport;
}

async function waitConverged(
  { stack, world, signal }: ActOptions,
  pools: readonly string[],
  { loads }: LoadStep,
): Promise<boolean> {
  const { client } = stack;
  const { namespace } = world;
  const check = async () => {
    const [found, scalers, machines] = await Promise.all([
      client.list(POOLS, { namespace }),
      client.list(SCALERS, { namespace }),
      client.list(MACHINES, { namespace }),
    ]);
    const counts = new Map<string, number>();
    for (const { metadata } of machines.items) {
      const owner = metadata.ownerReferences?.[0]?.name ?? "";
      counts.set(owner, (counts.get(owner) ?? 0) + 1);
    }
    return (
      found.items.length === pools.length &&
      isConverged({ pools: found.items, scalers: scalers.items, machines: counts }, (pool) =>
        replicasFor(Number(loads[pool] ?? 0)),
      )
    );
  };
  try {
    await pollUntil("all pools are as the load asks", check, {
      signal,
      deadlineMs: CONVERGE_MS,
      everyMs: 200,
    });
    return true;
  } catch (error) {
    if (error instanceof KonvergeError && error.code === "demo_failed") return false;
    throw error;
  }
}

async function checkLost(
  { stack, world }: ActOptions,
  pools: readonly string[],
  report: WriterReport,
): Promise<LostUpdate[]> {
  const { items } = await stack.client.list(POOLS, { namespace: world.namespace });
  const writes = await readControllerWrites(stack.apiUrl, world.namespace, pools);
  return findLostUpdates(items, report, writes);
}
