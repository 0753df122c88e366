import { defined, KonvergeError, sleepMs } from "@konverge/core";
import { startProcess, type LocalProcess, type LocalStack } from "@konverge/local-stack";
import type { ActName } from "./act-names.ts";
import type { ActControllers, ApiCalls } from "../load/act-controllers.ts";
import { countAuditedCalls } from "./call-counter.ts";
import { requestReconcile } from "../stage/http-requests.ts";
import { planLoad, type LoadStep } from "../load/load-plan.ts";
import { findLostUpdates, type LostUpdate } from "../load/lost-updates.ts";
import { NodePool } from "../load/kinds.ts";
import { readControllerWrites } from "../load/object-history.ts";
import type { WriterReport } from "../load/outside-writer.ts";
import { playOutage, type OutageFigures } from "./outage.ts";
import { DEMO_SCRIPT } from "../stage/scripts.ts";
import { waitForAgreement } from "../load/wait-for-agreement.ts";
import type { World } from "../load/world.ts";

/** The load of an act: the same for the same seed, whatever happens during the act. */
interface LoadOptions {
  readonly seed: number;
  readonly pools: number;
  readonly steps: number;
  readonly stepMs: number;
  readonly blindWriter: boolean;
}

export interface ActOptions {
  readonly name: ActName;
  readonly stack: LocalStack;
  readonly world: World;
  readonly load: LoadOptions;
  readonly outage: boolean;
  readonly startControllers: () => Promise<ActControllers>;
  readonly logs: string | undefined;
  readonly print: (line: string) => void;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
}

/** One act of the demo's JSON document. */
export interface ActFigures {
  readonly name: ActName;
  readonly callsPerWrite: number;
  readonly conflicts: number;
  /** From the last change of the load until every controller agrees. */
  readonly convergedMs: number;
  readonly converged: boolean;
  readonly lostUpdates: number;
  /** Updates dropped after the last retry. */
  readonly gaveUp: number;
  readonly apiCalls: number;
  readonly writes: number;
  readonly reconciles: number;
  readonly jobRetries: number;
  readonly outage?: OutageFigures;
}

export interface PlayedAct {
  readonly figures: ActFigures;
  readonly lost: readonly LostUpdate[];
  readonly pools: readonly string[];
  /** Removes the act's objects, then its workers, in this order: the workers must see the deletions. */
  end(): Promise<void>;
}

/** An act agrees within seconds, but not always on a busy machine. Naive controllers may never agree. */
const AGREEMENT_MS = { naive: 30_000, lazy: 120_000, konverge: 120_000 };
/** Before the load, every act must agree; on a busy machine its processes start slowly. */
const FIRST_AGREEMENT_MS = 120_000;

export async function playAct(options: ActOptions): Promise<PlayedAct> {
  const { name, stack, world, load, print } = options;
  const pools = Array.from(
    { length: load.pools },
    (_, n) => `${name}-${String(n).padStart(2, "0")}`,
  );
  const plan = planLoad(pools, { ...load, intervalMs: load.stepMs });
  const controllers = await options.startControllers();
  let writer: LocalProcess | undefined;
  const end = async () => {
    await writer?.stop();
    await world.clear();
    await controllers.stop();
  };
  try {
    print(`started ${processesText(controllers.pids)}`);
    const fromMs = Date.now();
    const first = firstOf(plan);
    await world.populate(pools, first.loads);
    await waitForAgreement(options, { pools, step: first, deadlineMs: FIRST_AGREEMENT_MS });
    writer = startWriter(options, pools);
    await writer.logged("writer started");
    const { agreedMs, report, outage } = await playLoad(options, {
      pools,
      plan,
      writer,
      controllers,
    });
    const converged = agreedMs !== undefined;
    const lost = await checkLost(options, pools, report);
    const outageFigures = await outage?.settle();
    const { reconciles, jobRetries, gaveUp, calls } = await controllers.totals();
    const counted = await countCalls(stack, {
      agent: controllers.agent,
      fromMs,
      clientSide: calls,
    });
    return {
      figures: {
        name,
        callsPerWrite: Math.round((counted.calls / Math.max(1, counted.writes)) * 100) / 100,
        conflicts: counted.conflicts,
        convergedMs: agreedMs ?? AGREEMENT_MS[name],
        converged,
        lostUpdates: lost.length,
        gaveUp,
        apiCalls: counted.calls,
        writes: counted.writes,
        reconciles,
        jobRetries,
        ...defined({ outage: outageFigures }),
      },
      lost,
      pools,
      end,
    };
  } catch (error) {
    await end();
    throw error;
  }
}

interface Playing {
  readonly pools: readonly string[];
  readonly plan: readonly LoadStep[];
  readonly writer: LocalProcess;
  readonly controllers: ActControllers;
}

interface PlayedLoad {
  /** Undefined if the controllers did not agree in time. */
  readonly agreedMs: number | undefined;
  readonly report: WriterReport;
  readonly outage: Awaited<ReturnType<typeof playOutage>> | undefined;
}

/** Plays the load together with the outside writer, which writes for one more step after the last change. */
async function playLoad(options: ActOptions, playing: Playing): Promise<PlayedLoad> {
  const { world, load, print, signal } = options;
  const { pools, plan, writer, controllers } = playing;
  let startedMs = performance.now();
  let outage: PlayedLoad["outage"];
  for (const [index, step] of plan.entries()) {
    await sleepMs(Math.max(0, startedMs + step.atMs - performance.now()), signal);
    await Promise.all([world.setLoads(step.loads), requestOverHttp(options, step)]);
    print(`load step ${index + 1} of ${plan.length}`);
    if (!options.outage || index !== Math.floor(plan.length / 2)) continue;
    outage = await playOutage({ ...options, pools, metrics: controllers.metricsUrls, writer });
    startedMs += outage.tookMs;
  }
  const agreement = { pools, step: lastOf(plan), deadlineMs: AGREEMENT_MS[options.name] };
  const [agreedMs, report] = await Promise.all([
    waitForAgreement(options, agreement),
    sleepMs(load.stepMs, signal).then(() => stopWriter(writer)),
  ]);
  // The outside writer may have reverted it.
  const isStable = (await waitForAgreement(options, agreement)) !== undefined;
  return { agreedMs: isStable ? agreedMs : undefined, report, outage };
}

function startWriter({ stack, world, load, logs }: ActOptions, pools: readonly string[]) {
  return startProcess({
    script: DEMO_SCRIPT,
    args: [
      "outside-writer",
      `--namespace=${world.namespace}`,
      `--pools=${pools.join(",")}`,
      `--seed=${load.seed}`,
      ...(load.blindWriter ? ["--blind"] : []),
    ],
    env: { KUBECONFIG: stack.apiServer.kubeconfigPath },
    logs,
  });
}

async function stopWriter(writer: LocalProcess): Promise<WriterReport> {
  const [done] = await Promise.all([writer.logged("writer done"), writer.stop()]);
  const { edits, labels, conflicts } = done;
  return { edits, labels, conflicts } as WriterReport;
}

/** Other systems request reconciles; the naive controllers accept no requests. */
async function requestOverHttp({ name, stack, world }: ActOptions, step: LoadStep): Promise<void> {
  if (name === "naive") return;
  const { namespace } = world;
  await Promise.all(
    step.httpRequests.map((pool) => requestReconcile(stack.apiUrl, { namespace, name: pool })),
  );
}

/** Counts in the audit log of the API server, or takes the client's own count if the demo did not start the server. */
async function countCalls(
  { apiServer }: LocalStack,
  {
    agent,
    fromMs,
    clientSide,
  }: { readonly agent: string; readonly fromMs: number; readonly clientSide: ApiCalls },
): Promise<ApiCalls> {
  if (apiServer.auditLog === undefined) return clientSide;
  return await countAuditedCalls(apiServer.auditLog, { agent, fromMs, toMs: Date.now() });
}

async function checkLost(
  { name, stack, world }: ActOptions,
  pools: readonly string[],
  report: WriterReport,
): Promise<LostUpdate[]> {
  const { items } = await stack.client.list(NodePool, { namespace: world.namespace });
  const writes =
    name === "naive" ? new Map() : await readControllerWrites(stack.apiUrl, world.namespace, pools);
  return findLostUpdates(items, report, writes);
}

function processesText(pids: readonly number[]): string {
  return `${pids.length} process${pids.length === 1 ? "" : "es"} (pids ${pids.join(", ")})`;
}

function firstOf(plan: readonly LoadStep[]): LoadStep {
  const [first] = plan;
  if (first === undefined) throw new KonvergeError("internal", "the load plan is empty");
  return first;
}

function lastOf(plan: readonly LoadStep[]): LoadStep {
  return plan.at(-1) ?? firstOf(plan);
}
