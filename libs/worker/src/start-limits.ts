import { parseKey, type RunStatus } from "@konverge/core";
import { openLimits, type OpenLimits } from "@konverge/guard";
import { createWorkQueue, QueueProcess, type WorkQueue } from "@konverge/queue";
import { runOfKey, type Workflows } from "@konverge/workflow";
import type { WorkerSetup } from "./worker-setup.ts";

/** Statuses of runs whose steps ask for no permit until something else happens. */
const AWAY: ReadonlySet<RunStatus> = new Set(["blocked", "paused", "done", "failed", "cancelled"]);

/** Returns the runs of the installation. */
type Runs = () => Pick<Workflows, "peek">;

/** Opens the named limits of the configuration; undefined without any. */
export function startLimits(setup: WorkerSetup, runs: Runs): OpenLimits | undefined {
  const { config, place, workerId, options } = setup;
  const { log, metrics } = options;
  if (Object.keys(config.limits).length === 0) return undefined;
  const waiters = new WaiterQueues(setup, runs);
  setup.atEnd("the queues of waiters", () => waiters.close());
  const limits = openLimits({
    redis: place.redis,
    prefix: place.prefix,
    limits: config.limits,
    workerId,
    wake: (waiter, limit) => waiters.wake(waiter, limit),
    onChanged: (limit, by) => log.warn({ limit, by }, "limit updated by this worker"),
    onError: (error) => log.warn({ err: error }, "limit error"),
  });
  const unobserve = metrics.observeLimits(() => limits.counts());
  setup.atEnd("the limits", async () => {
    unobserve();
    await limits.close();
  });
  return limits;
}

/** Requests the keys whose runs and attempts wait for a limit. */
class WaiterQueues {
  readonly #setup: WorkerSetup;
  readonly #runs: Runs;
  readonly #process: QueueProcess;
  readonly #queues = new Map<string, WorkQueue>();

  constructor(setup: WorkerSetup, runs: Runs) {
    this.#setup = setup;
    this.#runs = runs;
    this.#process = new QueueProcess(setup.place.redis);
  }

  /** Returns false for a run that has ended or been paused while it waited. */
  async wake(waiter: string, limit: string): Promise<boolean> {
    const [text = ""] = waiter.split(" ");
    const key = parseKey(text);
    // A waiter of another cluster asks again by itself.
    if (key.cluster !== this.#setup.place.cluster) return true;
    const ref = runOfKey(key);
    if (ref !== undefined) {
      const run = await this.#runs().peek(ref);
      if (run === undefined || AWAY.has(run.status)) return false;
    }
    const reason = `limit "${limit}" has a free slot`;
    await this.#open(key.controller).request(key, { kind: "signal", by: "limit", reason });
    return true;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
  }

  #open(controller: string): WorkQueue {
    const { place, shards, options } = this.#setup;
    const onError = (error: Error) => options.log.warn({ err: error, controller }, "queue error");
    const queue =
      this.#queues.get(controller) ??
      createWorkQueue({ ...place, controller, shards, process: this.#process, onError });
    this.#queues.set(controller, queue);
    return queue;
  }
}
