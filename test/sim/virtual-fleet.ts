import type { CallResult, GateCall, GuardLimits } from "@konverge/core";
import type { TokenPool } from "../../libs/guard/src/token-pool-options.ts";
import { createTokenPool } from "../../libs/guard/src/token-pool.ts";
import type { Use } from "./largest-excess.ts";
import { seededRandom } from "../../apps/demo/src/load/seeded-random.ts";
import { createVirtualClock, type VirtualClock } from "./virtual-clock.ts";
import { createVirtualRedis, type VirtualRedis } from "./virtual-redis.ts";

/** Faults of messages between a worker and Redis. */
export interface Network {
  /** Range of the one-way latency, in ms. */
  readonly delayMs: readonly [number, number];
  /** Shares of lost requests, lost answers, and duplicated requests. */
  readonly lostAsks: number;
  readonly lostAnswers: number;
  readonly doubled: number;
  /** Share of breaker messages that a worker misses; 1 disables them. */
  readonly lostNews: number;
}

/** The API server's response to a call. */
export type VirtualServer = (sent: {
  readonly call: GateCall;
  readonly worker: string;
  readonly atMs: number;
}) => { readonly result: CallResult; readonly tookMs: number };

/** A sent call. */
export interface Sent extends Use {
  readonly worker: string;
  readonly call: GateCall;
  readonly waitedMs: number;
  endMs: number;
}

type CallEnd =
  | { readonly kind: "sent"; readonly result: CallResult; readonly waitedMs: number }
  | { readonly kind: "refused"; readonly error: unknown };

export interface VirtualWorker {
  readonly id: string;
  readonly share: TokenPool;
  /** Requests a permit, sends and settles, like the transport. */
  call(call: GateCall, signal?: AbortSignal): Promise<CallEnd>;
  /** A timer of this process: it stalls and dies with the process. */
  readonly schedule: (ms: number, work: () => void) => () => void;
  /** Timers of its token pool that are not over. */
  readonly poolTimers: number;
  /** Stalls this process for this time. */
  stall(ms: number): void;
  crash(): void;
}

export interface VirtualFleet {
  readonly clock: VirtualClock;
  readonly random: () => number;
  readonly redis: VirtualRedis;
  readonly workers: readonly VirtualWorker[];
  /** Every call, in the order of sending. */
  readonly sent: readonly Sent[];
  readonly errors: readonly Error[];
  addWorker(): VirtualWorker;
  /** Breaks all connections to Redis for this time, optionally with a new Redis process after it. */
  outage(ms: number, change?: (redis: VirtualRedis) => void): void;
}

export interface VirtualFleetOptions {
  /** The limits in Redis. */
  readonly limits: GuardLimits;
  /** The limits that workers are configured with. Default `limits`. */
  readonly own?: GuardLimits;
  readonly workers: number;
  readonly seed: number;
  readonly network?: Partial<Network>;
  readonly server?: VirtualServer;
  readonly maxInFlight?: number;
  /** If false, any call can be the probe. */
  readonly probes?: boolean;
}

const CALM: Network = { delayMs: [0.1, 0.5], lostAsks: 0, lostAnswers: 0, doubled: 0, lostNews: 0 };
/** As in the real connection: a slower request fails. */
const COMMAND_MS = 1_000;
const PROBE: GateCall = { verb: "get", resource: "namespaces", priority: "critical", probe: true };

export const getCall: GateCall = { verb: "get", resource: "configmaps", priority: "event" };
export const answered = (status: number): CallResult => ({ kind: "response", status });

/** Many token pools (production code) and one Redis on a virtual clock: equal seeds give equal histories. */
export function createVirtualFleet(options: VirtualFleetOptions): VirtualFleet {
  const { limits, maxInFlight = 64, probes = true } = options;
  const network = { ...CALM, ...options.network };
  const server = options.server ?? (() => ({ result: answered(200), tookMs: 2 }));
  const clock = createVirtualClock();
  const random = seededRandom(options.seed);
  const workers: VirtualWorker[] = [];
  const sent: Sent[] = [];
  const errors: Error[] = [];
  const delay = () => network.delayMs[0] + random() * (network.delayMs[1] - network.delayMs[0]);
  const redis = createVirtualRedis(clock, limits, ({ to: mode, generation, untilMs, atMs }) => {
    for (const { schedule, share } of workers) {
      if (random() < network.lostNews) continue;
      schedule(delay(), () => share.learn({ mode, generation, waitMs: untilMs - atMs }));
    }
  });
  const connections: (() => void)[] = [];

  function addWorker(): VirtualWorker {
    const id = `w${workers.length}`;
    let isAlive = true;
    let stalledUntilMs = -Infinity;
    let runId = redis.runId;
    let breakConnection = new AbortController();
    const underWay = new Set<Sent>();
    const poolTimers = new Set<object>();

    const schedule = (ms: number, work: () => void): (() => void) => {
      let cancel = clock.schedule(ms, function fire() {
        if (!isAlive) return;
        if (clock.nowMs < stalledUntilMs) {
          cancel = clock.schedule(stalledUntilMs - clock.nowMs, fire);
        } else {
          work();
        }
      });
      return () => cancel();
    };

    const scheduleOfPool = (ms: number, work: () => void): (() => void) => {
      const timer = {};
      poolTimers.add(timer);
      const cancel = schedule(ms, () => {
        poolTimers.delete(timer);
        work();
      });
      return () => {
        poolTimers.delete(timer);
        cancel();
      };
    };

    /** Sends a request. Returns its answer, or an error after the time limit. */
    const send = <T>(work: () => T): Promise<T> =>
      new Promise((resolve, reject) => {
        const { signal } = breakConnection;
        const cancel = schedule(COMMAND_MS, () => reject(new Error("Command timed out")));
        const onBreak = () => {
          cancel();
          reject(new Error("Connection is closed."));
        };
        signal.addEventListener("abort", onBreak, { once: true });
        const arrive = (answers: boolean) => () => {
          if (!redis.isUp || signal.aborted) return;
          const answer = work();
          if (!answers || random() < network.lostAnswers) return;
          schedule(delay(), () => {
            cancel();
            signal.removeEventListener("abort", onBreak);
            resolve(answer);
          });
        };
        if (random() >= network.lostAsks) clock.schedule(delay(), arrive(true));
        if (random() < network.doubled) clock.schedule(delay() * 3, arrive(false));
      });

    const share = createTokenPool({
      workerId: id,
      limits: options.own ?? limits,
      maxInFlight,
      admit: (ask) => send(() => redis.admit(ask)),
      configure: (isLoss) => send(() => redis.configure(isLoss)),
      reachable: () => runId !== "",
      runId: () => runId,
      probe: probes
        ? async (signal) => {
            const end = await worker.call(PROBE, signal);
            if (end.kind === "refused") throw end.error;
          }
        : undefined,
      onBreaker: () => undefined,
      onTransition: () => undefined,
      onHealth: () => undefined,
      onRevision: () => undefined,
      onError: (error) => errors.push(error),
      clock: () => clock.nowMs,
      random,
      schedule: scheduleOfPool,
    });

    const call = async (request: GateCall, signal?: AbortSignal): Promise<CallEnd> => {
      const permit = await share
        .admit(request, signal === undefined ? {} : { signal })
        .catch((error: unknown) => ({ error }));
      if ("error" in permit) return { kind: "refused", error: permit.error };
      const { waitedMs } = permit;
      const atMs = clock.nowMs;
      const { result, tookMs } = server({ call: request, worker: id, atMs });
      const entry: Sent = {
        atMs,
        tokens: request.cost ?? 1,
        worker: id,
        call: request,
        waitedMs,
        endMs: atMs + tookMs,
      };
      sent.push(entry);
      underWay.add(entry);
      return new Promise((resolve) => {
        const end = (ended: CallResult) => {
          signal?.removeEventListener("abort", onAbort);
          entry.endMs = Math.min(entry.endMs, clock.nowMs);
          underWay.delete(entry);
          permit.settle(ended);
          resolve({ kind: "sent", result: ended, waitedMs });
        };
        const cancel = schedule(tookMs, () => end(result));
        const onAbort = () => {
          cancel();
          end({ kind: "aborted" });
        };
        signal?.addEventListener("abort", onAbort, { once: true });
      });
    };

    connections.push(() => {
      runId = "";
      breakConnection.abort();
      breakConnection = new AbortController();
      const reconnect = () => {
        if (!redis.isUp) return void schedule(50, reconnect);
        ({ runId } = redis);
        share.refresh();
      };
      schedule(50, reconnect);
    });
    const worker: VirtualWorker = {
      id,
      share,
      call,
      schedule,
      get poolTimers() {
        return poolTimers.size;
      },
      stall(ms) {
        stalledUntilMs = clock.nowMs + ms;
      },
      crash() {
        isAlive = false;
        // The connections of the process break.
        for (const own of underWay) own.endMs = Math.min(own.endMs, clock.nowMs);
      },
    };
    workers.push(worker);
    return worker;
  }

  for (let i = 0; i < options.workers; i += 1) addWorker();
  return {
    clock,
    random,
    redis,
    workers,
    sent,
    errors,
    addWorker,
    outage(ms, change) {
      redis.isUp = false;
      for (const breakConnection of connections) breakConnection();
      clock.schedule(ms, () => {
        change?.(redis);
        redis.isUp = true;
      });
    },
  };
}

/** A caller that repeats its call immediately, until the process dies. */
export function callForEver(
  worker: VirtualWorker,
  next: () => { readonly call: GateCall; readonly thinkMs?: number },
): void {
  const round = async (): Promise<void> => {
    const { call, thinkMs = 0 } = next();
    const end = await worker.call(call);
    const error = end.kind === "refused" ? end.error : undefined;
    const again = (error as { retryAfterMs?: number } | undefined)?.retryAfterMs;
    if (end.kind === "refused" && again === undefined) return;
    worker.schedule(Math.max(0.001, thinkMs + (again ?? 0)), () => void round());
  };
  void round();
}
