import { nextDelay, failureBackoff, isKonvergeError, type Gate, type Permit } from "@konverge/core";
import { createKubeClient, loadKubeCredentials, type KubeClient } from "@konverge/kube";
import { ConfigMap, Namespace } from "@konverge/kube/kinds";
import { until } from "../support/until.ts";

/** One arm of the experiment; arms differ only in how calls are admitted. */
export interface Arm {
  readonly name: string;
  /** Creates a gate per worker, given a function that makes one read through it. */
  openGate(
    worker: string,
    probe: (signal: AbortSignal) => Promise<unknown>,
  ): Promise<Gate & { close?(): Promise<void> }>;
}

export interface LoadOptions {
  readonly kubeconfig: string;
  readonly namespace: string;
  readonly keys: number;
  readonly workers: number;
  /** Concurrent attempts per worker. */
  readonly concurrency: number;
  /** Interval between a success and the next request of a key, in ms. */
  readonly periodMs: number;
  readonly deadlineMs: number;
  readonly arm: Arm;
}

/** The sent calls with their results. Times in ms since the start of the load. */
interface LoadLog {
  readonly sentMs: number[];
  readonly okMs: number[];
  failed: number;
  deferred: number;
}

export interface RunningLoad {
  readonly log: LoadLog;
  /** ms since the start of the load. */
  now(): number;
  /** Keys that have succeeded at least once since `ms`. */
  reachedSince(ms: number): number;
  /** True after at least two successes of every key since `ms`. */
  goesRoundSince(ms: number): boolean;
  /** Calls sent in [fromMs, toMs). */
  sentBetween(fromMs: number, toMs: number): number;
  /** Keys that succeeded per second over [fromMs, toMs). */
  okRate(fromMs: number, toMs: number): number;
  stop(): Promise<void>;
}

/**
 * Increments `keys` ConfigMaps periodically: read, add one, write. After a failure, it retries with the failure backoff
 * (full jitter) or the server's Retry-After. After a deferral, it retries when the gate allows, without counting a failure.
 */
export async function startLoad(options: LoadOptions): Promise<RunningLoad> {
  const { arm, keys, namespace, periodMs } = options;
  const startedMs = performance.now();
  const now = () => performance.now() - startedMs;
  const log: LoadLog = { sentMs: [], okMs: [], failed: 0, deferred: 0 };
  const lastOkMs = Array.from({ length: keys }, () => -1);
  const lastButOneOkMs = lastOkMs.slice();
  const failures = Array.from({ length: keys }, () => 0);
  // Spread the keys over one period.
  const due = new Map<number, number>(lastOkMs.map((_, key) => [key, (key / keys) * periodMs]));
  const stopped = new AbortController();
  const closers: (() => Promise<void>)[] = [];

  const attempt = async (client: KubeClient, key: number) => {
    try {
      await client.mutate<{
        apiVersion: string;
        kind: string;
        metadata: { name: string };
        data?: Record<string, string>;
      }>(
        ConfigMap,
        { namespace, name: `k-${key}` },
        (draft) => {
          draft.data = { ...draft.data, count: String(Number(draft.data?.["count"] ?? 0) + 1) };
        },
        { retry: "none" },
      );
      log.okMs.push(now());
      lastButOneOkMs[key] = lastOkMs[key] ?? -1;
      lastOkMs[key] = now();
      failures[key] = 0;
      due.set(key, now() + periodMs);
    } catch (error) {
      if (!isKonvergeError(error)) throw error;
      const retryAfterMs = error.retryAfterMs ?? 0;
      if (error.code === "deferred") {
        log.deferred += 1;
        due.set(key, now() + retryAfterMs);
        return;
      }
      log.failed += 1;
      const step = nextDelay(failureBackoff, failures[key] ?? 0);
      failures[key] = (failures[key] ?? 0) + 1;
      const delayMs = step.kind === "wait" ? step.afterMs : failureBackoff.capMs;
      due.set(key, now() + Math.max(delayMs, retryAfterMs));
    }
  };
  const nextDue = (): number | undefined => {
    let best: number | undefined;
    let bestMs = now();
    for (const [key, ms] of due) if (ms <= bestMs) [best, bestMs] = [key, ms];
    if (best !== undefined) due.delete(best);
    return best;
  };
  const loop = async (client: KubeClient) => {
    while (!stopped.signal.aborted) {
      const key = nextDue();
      if (key === undefined) await new Promise((resolve) => setTimeout(resolve, 2));
      else await attempt(client, key);
    }
  };
  const loops: Promise<void>[] = [];
  for (let worker = 0; worker < options.workers; worker++) {
    let client: KubeClient | undefined;
    const gate = await arm.openGate(`w${worker}`, async (signal) =>
      client?.scoped({ signal, isProbe: true }).get(Namespace, { name: namespace }),
    );
    client = createKubeClient({
      credentials: loadKubeCredentials({ kubeconfigText: options.kubeconfig }),
      gate: counting(gate, () => log.sentMs.push(now())),
      userAgent: `outage-${arm.name}`,
      maxConnections: 64,
      requestTimeoutMs: options.deadlineMs,
    });
    const opened = client;
    closers.push(
      () => opened.close(),
      () => gate.close?.() ?? Promise.resolve(),
    );
    for (let slot = 0; slot < options.concurrency; slot++) loops.push(loop(opened));
  }
  return {
    log,
    now,
    reachedSince: (ms) => lastOkMs.filter((okMs) => okMs >= ms).length,
    goesRoundSince: (ms) => lastButOneOkMs.every((okMs) => okMs >= ms),
    sentBetween: (fromMs, toMs) => log.sentMs.filter((ms) => ms >= fromMs && ms < toMs).length,
    okRate: (fromMs, toMs) =>
      (log.okMs.filter((ms) => ms >= fromMs && ms < toMs).length * 1_000) / (toMs - fromMs),
    async stop() {
      stopped.abort();
      await Promise.all(loops);
      for (const close of closers) await close();
    },
  };
}

/** Creates the objects that the load increments. */
export async function prepareKeys(
  client: KubeClient,
  namespace: string,
  keys: number,
): Promise<void> {
  for (let from = 0; from < keys; from += 50) {
    await Promise.all(
      Array.from({ length: Math.min(50, keys - from) }, (_, n) =>
        client.create(ConfigMap, {
          apiVersion: "v1",
          kind: "ConfigMap",
          metadata: { namespace, name: `k-${from + n}` },
        }),
      ),
    );
  }
}

/**
 * Polls until the load has its usual speed again or, on a machine that is too slow for it, every key has succeeded twice since
 * `sinceMs`; resolves to that time in ms of the load.
 */
export async function untilSteady(
  load: RunningLoad,
  { sinceMs, perSecond }: { readonly sinceMs: number; readonly perSecond: number },
  what: string,
): Promise<number> {
  await until(
    what,
    () =>
      load.now() > 8_000 &&
      (load.okRate(load.now() - 1_000, load.now()) >= 0.8 * perSecond ||
        load.goesRoundSince(sinceMs)),
    600_000,
  );
  return load.now();
}

function counting(gate: Gate, note: () => void): Gate {
  return {
    async admit(call, options): Promise<Permit> {
      const permit = await gate.admit(call, options);
      note();
      return permit;
    },
  };
}
