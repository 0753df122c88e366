import { KonvergeError, sleepMs } from "@konverge/core";
import { openGuardControl } from "@konverge/guard";
import type { LocalProcess, LocalStack } from "@konverge/local-stack";
import { requestReconcile, waitForReconcile } from "../stage/http-requests.ts";
import { readWorkerTotals } from "../stage/worker-metrics.ts";
import type { World } from "../load/world.ts";
import { redisOfDemo } from "../stage/redis-of-demo.ts";

/** What happened while the API server was frozen. */
export interface OutageFigures {
  readonly seconds: number;
  /** Calls that workers sent to it, probes included. */
  readonly callsSent: number;
  /** Calls that the guard deferred instead of sending them. */
  readonly deferred: number;
  readonly probes: number;
  /** HTTP requests accepted during the outage that no attempt covered afterwards. */
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
 * Freezes the API server's process: connections stay open without an answer, the worst kind of outage. Other systems keep
 * requesting reconciles. `settle` reports whether all requests were kept.
 */
export async function playOutage(
  options: OutageOptions,
): Promise<{ readonly tookMs: number; settle(): Promise<OutageFigures> }> {
  const { stack, world, pools, metrics, writer, print, signal } = options;
  const { pid: serverPid } = stack.apiServer;
  if (serverPid === undefined)
    throw new KonvergeError("demo_failed", "the demo did not start this API server");
  const startedMs = performance.now();
  const fromMs = Date.now();
  const before = await readWorkerTotals(metrics);
  const asked: string[] = [];
  // Its calls would have an unknown outcome, and the demo could not tell what it wrote.
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

/** Each half-open period issues one ticket. */
async function countProbes(
  stack: LocalStack,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): Promise<number> {
  await using control = openGuardControl({
    redis: redisOfDemo(stack.redis.url),
    prefix: stack.installation,
  });
  const { transitions = [] } = (await control.read("default")) ?? {};
  return transitions.filter(({ to, atMs }) => to === "halfOpen" && atMs >= fromMs && atMs <= toMs)
    .length;
}
