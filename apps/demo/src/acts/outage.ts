import { KonvergeError, sleepMs } from "@konverge/core";
import { openGuardControl } from "@konverge/guard";
import type { LocalProcess, LocalStack } from "@konverge/local-stack";
import { requestReconcile, waitForReconcile } from "../stage/http-requests.ts";
import { readWorkerTotals } from "../stage/worker-metrics.ts";
import type { World } from "../load/world.ts";

/** What happened while the API server stood still. */
export interface OutageFigures {
  readonly seconds: number;
  /** Calls that workers sent to it, probes included. */
  readonly callsSent: number;
  /** Calls that the guard put off instead of sending them. */
  readonly deferred: number;
  readonly probes: number;
  /** Of the requests taken over HTTP meanwhile, those that no attempt has covered in the end. */
  readonly lost: number;
}

export interface OutageOptions {
  readonly stack: LocalStack;
  readonly world: World;
  readonly pools: readonly string[];
  readonly metrics: readonly string[];
  readonly writer: LocalProcess;
  readonly print: (line: string) => void;
  readonly signal: AbortSignal;
}

const SECONDS = 20;

/**
 * Freezes the API server's process: connections stay open and nothing is answered, the worst kind of outage. Other systems
 * go on asking for reconciles meanwhile. `settle` says in the end whether all of them were kept.
 */
export async function playOutage(
  options: OutageOptions,
): Promise<{ readonly tookMs: number; settle(): Promise<OutageFigures> }> {
  const { stack, world, pools, metrics, writer, print, signal } = options;
  const { pid: serverPid } = stack.apiServer;
  if (serverPid === undefined) throw new KonvergeError("demo_failed", "the API server is not ours");
  const startedMs = performance.now();
  const fromMs = Date.now();
  const before = await readWorkerTotals(metrics);
  const asked: string[] = [];
  // Its calls would end unknown, and then nobody could say what it wrote.
  writer.freeze();
  process.kill(serverPid, "SIGSTOP");
  try {
    for (let second = 1; second <= SECONDS; second++) {
      print(`API server frozen, ${second} of ${SECONDS} s`);
      const name = pools[second % pools.length] ?? "";
      asked.push(await requestReconcile(stack.apiUrl, { namespace: world.namespace, name }));
      await sleepMs(1_000, signal);
    }
  } finally {
    process.kill(serverPid, "SIGCONT");
    writer.thaw();
  }
  const after = await readWorkerTotals(metrics);
  const probes = await countProbes(stack, { fromMs, toMs: Date.now() });
  return {
    tookMs: performance.now() - startedMs,
    async settle() {
      const finished = await Promise.all(asked.map((id) => waitForReconcile(stack.apiUrl, id)));
      return {
        seconds: SECONDS,
        callsSent: after.permits - before.permits,
        deferred: after.deferred - before.deferred,
        probes,
        lost: finished.filter((isFinished) => !isFinished).length,
      };
    },
  };
}

/** Each half opening hands out one ticket. */
async function countProbes(
  stack: LocalStack,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): Promise<number> {
  await using control = openGuardControl({
    redis: { url: stack.redis.url },
    prefix: stack.installation,
  });
  const { transitions = [] } = (await control.read("default")) ?? {};
  return transitions.filter(({ to, atMs }) => to === "halfOpen" && atMs >= fromMs && atMs <= toMs)
    .length;
}
