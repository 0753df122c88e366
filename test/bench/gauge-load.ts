import { createReflector, type KubeClient } from "@konverge/kube";
import type { BareClient } from "./bare-client.ts";
import { Gauge, gaugeName, gaugePath, GAUGES_IN } from "./gauge.ts";

/** Writers that change specs. They are not measured, and are the same for every controller. */
const CHANGERS = 16;

interface Changes {
  /** Time from the first change in the watch to the last status. */
  readonly tookMs: number;
  /** For each change, the time from its event in the watch to the event with the status. */
  readonly latenciesMs: readonly number[];
}

interface ChangeOptions {
  /** The number of gauges; each is changed once. */
  readonly count: number;
  /** Changes per second. Default: as fast as the server accepts them. */
  readonly ratePerSecond?: number;
  /** The name of the arm, for the error about a missing status. */
  readonly by: string;
}

/** Changes gauges and measures in one watch when their status follows. */
export interface GaugeLoad {
  change(options: ChangeOptions): Promise<Changes>;
  stop(): Promise<void>;
}

export async function startGaugeLoad(client: KubeClient, bare: BareClient): Promise<GaugeLoad> {
  interface Awaited {
    readonly step: number;
    readonly changedAtMs: Map<string, number>;
    readonly latenciesMs: number[];
    readonly onWritten: () => void;
  }
  let awaited: Awaited | undefined;
  let step = 0;
  const reflector = createReflector({
    client,
    type: Gauge,
    namespace: GAUGES_IN,
    onEvent({ object }) {
      if (awaited === undefined || object.spec.step !== awaited.step) return;
      const nowMs = performance.now();
      const { name } = object.metadata;
      const changedAtMs = awaited.changedAtMs.get(name) ?? nowMs;
      awaited.changedAtMs.set(name, changedAtMs);
      if (object.status?.seen !== awaited.step) return;
      awaited.latenciesMs.push(nowMs - changedAtMs);
      awaited.onWritten();
    },
    onError: (error) => console.error(`bench: the observer's watch: ${error.message}`),
  });
  reflector.start();
  await reflector.synced;

  return {
    async change({ count, ratePerSecond, by }) {
      const written = Promise.withResolvers<void>();
      const latenciesMs: number[] = [];
      const changedAtMs = new Map<string, number>();
      step += 1;
      awaited = {
        step,
        changedAtMs,
        latenciesMs,
        onWritten: () => {
          if (latenciesMs.length === count) written.resolve();
        },
      };
      const startedMs = performance.now();
      // The slowest peer needs a third of 50 ms per object.
      const limitMs = 60_000 + count * 50;
      const timer = setTimeout(() => {
        const missing = `${by}: ${latenciesMs.length} of ${count} statuses written after ${limitMs} ms`;
        written.reject(new Error(missing));
      }, limitMs);
      let next = 0;
      const changer = async () => {
        for (;;) {
          const n = next++;
          if (n >= count) return;
          if (ratePerSecond !== undefined) await until(startedMs + (n * 1_000) / ratePerSecond);
          await bare.send("PATCH", gaugePath(gaugeName(n)), { spec: { step } });
        }
      };
      try {
        await Promise.all([written.promise, ...Array.from({ length: CHANGERS }, changer)]);
        return {
          tookMs: performance.now() - Math.min(...changedAtMs.values()),
          latenciesMs,
        };
      } finally {
        clearTimeout(timer);
        awaited = undefined;
      }
    },
    stop: () => reflector.stop(),
  };
}

async function until(atMs: number): Promise<void> {
  const leftMs = atMs - performance.now();
  if (leftMs > 0) await new Promise((resolve) => setTimeout(resolve, leftMs));
}
