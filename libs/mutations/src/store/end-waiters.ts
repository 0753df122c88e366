import { ensureError, KonvergeError } from "@konverge/core";
import { closeRedis, openSubscriber, type RedisClient, type RedisTarget } from "@konverge/redis";
import type { MutationView } from "./mutation-store.ts";

/** Interval in which awaited mutations are read, in case a message was lost, in ms. */
const POLL_MS = 2_000;

interface EndWaitersOptions {
  readonly redis: RedisTarget;
  readonly channel: string;
  readonly read: (id: string) => Promise<MutationView | undefined>;
  readonly onError: (error: Error) => void;
}

/** The callers of this process that wait for the ends of mutations. Subscribes on first use. */
export class EndWaiters {
  readonly #options: EndWaitersOptions;
  readonly #wakes = new Map<string, Set<() => void>>();
  #subscriber: RedisClient | undefined;

  constructor(options: EndWaitersOptions) {
    this.#options = options;
  }

  /** @throws the reason of `signal`; KonvergeError `not_found`, `redis_unavailable` */
  async wait(id: string, signal: AbortSignal): Promise<MutationView> {
    this.#subscribe();
    const wakes = this.#wakes.get(id) ?? new Set();
    this.#wakes.set(id, wakes);
    for (;;) {
      const next = Promise.withResolvers<void>();
      const wake = () => next.resolve();
      wakes.add(wake);
      const timer = setTimeout(wake, POLL_MS);
      signal.addEventListener("abort", wake, { once: true });
      try {
        signal.throwIfAborted();
        const view = await this.#options.read(id);
        if (view === undefined) throw new KonvergeError("not_found", `no mutation "${id}"`);
        if (view.endedAtMs !== undefined) return view;
        await next.promise;
      } finally {
        clearTimeout(timer);
        signal.removeEventListener("abort", wake);
        wakes.delete(wake);
        if (wakes.size === 0 && this.#wakes.get(id) === wakes) this.#wakes.delete(id);
      }
      this.#wakes.set(id, wakes);
    }
  }

  async close(): Promise<void> {
    if (this.#subscriber !== undefined) await closeRedis(this.#subscriber);
  }

  #subscribe(): void {
    if (this.#subscriber !== undefined) return;
    const { redis, channel, onError } = this.#options;
    const subscriber = openSubscriber(redis);
    this.#subscriber = subscriber;
    subscriber.on("error", onError);
    subscriber.on("message", (_: string, ids: string) => {
      for (const id of ids.split(" ")) for (const wake of this.#wakes.get(id) ?? []) wake();
    });
    subscriber.subscribe(channel).catch((error: unknown) => onError(ensureError(error)));
  }
}
