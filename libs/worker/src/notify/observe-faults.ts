import {
  ensureError,
  parseKey,
  type Fault,
  type NotificationEvent,
  shortName,
} from "@konverge/core";
import type { Log } from "@konverge/engine";
import {
  createHistoryReader,
  createWorkQueue,
  EPISODE_PAUSE_MS,
  faultId,
  QueueProcess,
  type ControllerRegistry,
  type HistoryReader,
  type NotificationStore,
  type RedisTarget,
  type WorkQueue,
} from "@konverge/queue";
import type { Guard } from "@konverge/guard";
import type { Workflows } from "@konverge/workflow";
import type { ObservedFaults } from "./plan-notification.ts";

export interface FaultObserverOptions {
  readonly redis: RedisTarget;
  readonly prefix: string;
  readonly cluster: string;
  readonly shards: number;
  /** The events that a rule names. The others are not read. */
  readonly events: ReadonlySet<NotificationEvent>;
  readonly registry: Pick<ControllerRegistry, "list" | "listWorkflows">;
  readonly runs: () => Pick<Workflows, "list">;
  readonly guard: Pick<Guard, "breaker">;
  readonly store: Pick<NotificationStore, "approvals" | "contended" | "setContended">;
  readonly log: Log;
}

/** Reads the current faults of a cluster from Redis. */
export interface FaultObserver {
  observe(): Promise<ObservedFaults>;
  close(): Promise<void>;
}

/** The faults of one event, and whether there may be more. */
interface Found {
  readonly faults: readonly Fault[];
  readonly isPartial: boolean;
}

const PAGE = 1_000;
/** Faults of one event that are read at a time. */
const MOST_READ = 10_000;
/** Wasted writes of an episode from which on it is a fault, as on the dashboard. */
const MIN_WASTED = 20;
const EPISODE_MINUTES: number = EPISODE_PAUSE_MS / 60_000;

export function createFaultObserver(options: FaultObserverOptions): FaultObserver {
  return new RedisFaultObserver(options);
}

class RedisFaultObserver implements FaultObserver {
  readonly #options: FaultObserverOptions;
  readonly #process: QueueProcess;
  readonly #queues = new Map<string, WorkQueue>();
  readonly #history: HistoryReader;
  #openSinceMs: number | undefined;

  constructor(options: FaultObserverOptions) {
    this.#options = options;
    const { redis, prefix, cluster } = options;
    this.#process = new QueueProcess(redis);
    this.#history = createHistoryReader({ redis, prefix, cluster, onError: this.#onError });
  }

  async observe(): Promise<ObservedFaults> {
    const { events } = this.#options;
    const partial = new Set<NotificationEvent>();
    const reads: readonly (readonly [NotificationEvent, () => Promise<Found>])[] = [
      ["dead_letter", () => this.#deadLetters()],
      ["run_blocked", () => this.#blockedRuns()],
      ["approval", () => this.#awaitedApprovals()],
      ["contention", () => this.#contention()],
      ["breaker_open", () => this.#openBreaker()],
    ];
    const found = await Promise.all(
      reads.map(async ([event, read]) => {
        if (!events.has(event)) return [];
        try {
          const { faults, isPartial } = await read();
          if (isPartial) partial.add(event);
          return faults;
        } catch (error) {
          // Its current faults are unknown, so none of them counts as resolved.
          partial.add(event);
          this.#onError(ensureError(error));
          return [];
        }
      }),
    );
    return { faults: new Map(found.flat().map((fault) => [faultId(fault), fault])), partial };
  }

  async close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
    await this.#history.close();
  }

  readonly #onError = (error: Error): void => {
    this.#options.log.warn({ err: error }, "faults not read");
  };

  async #deadLetters(): Promise<Found> {
    const controllers = await this.#options.registry.list();
    const faults: Fault[] = [];
    for (const { name } of controllers) {
      let after: string | undefined;
      do {
        const query = { phase: "deadLettered", limit: PAGE } as const;
        const page = await this.#queueOf(name).control.listKeys(
          after === undefined ? query : { ...query, after },
        );
        for (const { key, deadLetter } of page.items) {
          if (deadLetter === undefined) continue;
          const { code = "unknown" } = deadLetter.error ?? {};
          faults.push({
            event: "dead_letter",
            subject: key,
            group: name,
            summary: `${name}: ${nameOf(key)} is dead-lettered (${code})`,
            sinceMs: Date.parse(deadLetter.since),
          });
        }
        if (faults.length >= MOST_READ) return { faults, isPartial: true };
        after = page.next;
      } while (after !== undefined);
    }
    return { faults, isPartial: false };
  }

  async #blockedRuns(): Promise<Found> {
    const workflows = (await this.#options.registry.listWorkflows()).map(({ name }) => name);
    if (workflows.length === 0) return { faults: [], isPartial: false };
    const faults: Fault[] = [];
    // An undo that is blocked is tried again, and is one fault meanwhile.
    for (const status of ["blocked", "compensating"] as const) {
      let page = await this.#options.runs().list(workflows, { limit: PAGE, filter: { status } });
      for (;;) {
        for (const { workflow, id, blockedReason, blockedAtMs, createdAtMs } of page.runs) {
          if (status === "compensating" && blockedReason === undefined) continue;
          faults.push({
            event: "run_blocked",
            subject: `${workflow}/${id}`,
            group: workflow,
            summary: `${workflow}: run ${id} is blocked`,
            sinceMs: blockedAtMs ?? createdAtMs,
          });
        }
        if (faults.length >= MOST_READ) return { faults, isPartial: true };
        if (page.next === undefined) break;
        const from = page.next;
        page = await this.#options
          .runs()
          .list(workflows, { limit: PAGE, from, filter: { status } });
      }
    }
    return { faults, isPartial: false };
  }

  async #awaitedApprovals(): Promise<Found> {
    const approvals = await this.#options.store.approvals();
    const awaiting = approvals.filter(({ state }) => state === "awaiting");
    const faults = awaiting.slice(0, MOST_READ).map(({ key, controller, since }): Fault => ({
      event: "approval",
      subject: key,
      group: controller,
      summary: `${controller}: the plan of ${nameOf(key)} awaits approval`,
      sinceMs: Date.parse(since),
    }));
    return { faults, isPartial: awaiting.length > MOST_READ };
  }

  /**
   * An episode begins with 20 wasted writes in 10 minutes, and ends after 10 minutes without one. Redis stores its
   * start, so that another process neither ends it early nor reports it again.
   */
  async #contention(): Promise<Found> {
    const { store } = this.#options;
    const [stored, wasted] = await Promise.all([store.contended(), this.#history.wastedWrites()]);
    const now = new Map<string, number>();
    const faults = wasted.flatMap(({ object, controller, minutes }): Fault[] => {
      const recent = minutes.slice(-EPISODE_MINUTES).reduce((sum, writes) => sum + writes, 0);
      const subject = `${controller}/${object}`;
      const known = stored.get(subject);
      if (recent < (known === undefined ? MIN_WASTED : 1)) return [];
      const sinceMs = known ?? Date.now();
      now.set(subject, sinceMs);
      const summary = `${controller}: other writers undo writes to ${object}`;
      return [{ event: "contention", subject, group: controller, summary, sinceMs }];
    });
    const ended = [...stored.keys()].filter((subject) => !now.has(subject));
    const begun = [...now].filter(([subject]) => !stored.has(subject));
    await store.setContended(
      new Map([...begun, ...ended.map((subject) => [subject, undefined] as const)]),
    );
    return { faults, isPartial: false };
  }

  async #openBreaker(): Promise<Found> {
    const { guard, cluster } = this.#options;
    const { mode, generation } = guard.breaker;
    // Not known before the first answer of Redis.
    if (generation === 0) return { faults: [], isPartial: true };
    this.#openSinceMs = mode === "closed" ? undefined : (this.#openSinceMs ?? Date.now());
    if (this.#openSinceMs === undefined) return { faults: [], isPartial: false };
    const summary =
      mode === "isolated"
        ? `an operator has isolated the API server of cluster ${cluster}`
        : `the circuit breaker of cluster ${cluster} is open`;
    const sinceMs = this.#openSinceMs;
    const fault = {
      event: "breaker_open",
      subject: cluster,
      group: cluster,
      summary,
      sinceMs,
    } as const;
    return { faults: [fault], isPartial: false };
  }

  #queueOf(controller: string): WorkQueue {
    const { redis, prefix, cluster, shards } = this.#options;
    const queue =
      this.#queues.get(controller) ??
      createWorkQueue({
        redis,
        prefix,
        cluster,
        controller,
        shards,
        process: this.#process,
        onError: this.#onError,
      });
    this.#queues.set(controller, queue);
    return queue;
  }
}

/** The short name of the object of a key. */
function nameOf(key: string): string {
  return shortName(parseKey(key));
}
