import { ensureError, parseKey } from "@konverge/core";
import type { HistoryAnswer, HistoryWriter, WorkQueue } from "@konverge/queue";
import type { Controller } from "../define/define-controller.ts";
import {
  ControllerHistory,
  type Collected,
  type ControllerHistoryOptions,
  type Writer,
} from "./controller-history.ts";
import { FleetReports } from "./fleet-reports.ts";
import { HistoryCollector } from "./history-collector.ts";
import { createSuspicion } from "./suspicion.ts";

const FLUSH_MS = 1_000;
/** Time during which no worker repeats a hint about a key. */
const REPORT_AGAIN_MS = 3_600_000;

export interface AttemptHistoryOptions extends Omit<
  ControllerHistoryOptions,
  "controller" | "queue"
> {
  readonly writer: HistoryWriter;
}

/**
 * Explains attempts beyond their own records: the search index, contention, reconcile loops and hints. It collects in memory
 * and stores every second; no attempt waits for it, and without Redis its data is the first to be dropped.
 */
export class AttemptHistory {
  readonly #options: AttemptHistoryOptions;
  readonly #controllers = new Map<string, ControllerHistory>();
  readonly #collected: Collected = {
    batch: new HistoryCollector(),
    suspicion: createSuspicion(),
    reports: new FleetReports(),
    writers: new Map<string, Writer>(),
  };
  readonly #timer: NodeJS.Timeout;
  #flushing: Promise<void> | undefined;
  #isFailing = false;

  constructor(options: AttemptHistoryOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.#tick(), FLUSH_MS);
    this.#timer.unref();
  }

  /** Starts the history of a controller. */
  of(controller: Controller, queue: WorkQueue): ControllerHistory {
    const { client, workerId, metrics } = this.#options;
    const log = this.#options.log.child({ controller: controller.name });
    const options = { controller, queue, client, workerId, metrics, log };
    const history = new ControllerHistory(options, this.#collected);
    this.#controllers.set(controller.name, history);
    return history;
  }

  /** Stores the rest. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#flushing;
    await this.#tick();
  }

  #tick(): Promise<void> {
    this.#flushing ??= this.#flush()
      .catch((error: unknown) => {
        this.#options.log.debug({ err: ensureError(error) }, "history look failed");
      })
      .finally(() => {
        this.#flushing = undefined;
      });
    return this.#flushing;
  }

  async #flush(): Promise<void> {
    const { batch, suspicion, reports, writers } = this.#collected;
    for (const key of suspicion.take()) await this.#historyOf(key)?.lookForLoop(key);
    const wrote = new Map(writers);
    writers.clear();
    const reporting = reports.take();
    const throttles = [...this.#controllers.values()].map(({ throttle }) => throttle);
    const loops = new Map(throttles.flatMap((throttle) => [...throttle.takeChanges()]));
    try {
      const answer = await this.#options.writer.flush({
        ...batch.take(),
        reports: [...reporting.keys()],
        reportAgainMs: REPORT_AGAIN_MS,
        loops,
      });
      this.#learn(answer, wrote);
      for (const name of answer.granted) reporting.get(name)?.();
      if (this.#isFailing) this.#options.log.info({}, "history writes resumed");
      this.#isFailing = false;
    } catch (error) {
      for (const [name, { throttle }] of this.#controllers) {
        throttle.putBack(ofController(loops, name));
      }
      for (const print of reporting.values()) print();
      // Once: Redis may be unavailable for long, and the queue reports it as well.
      if (!this.#isFailing) {
        const err = ensureError(error);
        this.#options.log.warn({ err }, "history write failed, records dropped");
      }
      this.#isFailing = true;
    }
  }

  #learn({ loops, episodes }: HistoryAnswer, wrote: ReadonlyMap<string, Writer>): void {
    for (const [name, { throttle }] of this.#controllers) {
      throttle.learn(ofController(loops, name));
    }
    for (const episode of episodes) {
      // Flips in another cluster are reported there; they throttle no key.
      if (episode.cluster !== undefined) continue;
      const writer = wrote.get(episode.object);
      if (writer !== undefined) this.#historyOf(writer.key)?.noteFlips(writer, episode);
    }
  }

  #historyOf(key: string): ControllerHistory | undefined {
    return this.#controllers.get(parseKey(key).controller);
  }
}

function ofController<Value>(byKey: ReadonlyMap<string, Value>, name: string): Map<string, Value> {
  return new Map([...byKey].filter(([key]) => parseKey(key).controller === name));
}
