import {
  defined,
  ensureError,
  formatKey,
  isKonvergeError,
  KonvergeError,
  nextDelay,
  type BackoffPolicy,
  type ObjectKey,
  type Trigger,
} from "@konverge/core";
import { isNewEventByDefault, rankOf } from "../contract/request-class.ts";
import type { RequestOptions } from "../contract/work-queue.ts";

export interface SubmittedRequestsOptions {
  /** Makes one request. */
  readonly request: (key: ObjectKey, trigger: Trigger, options: RequestOptions) => Promise<unknown>;
  /** Receives an error per failed try of a key; while Redis does not answer, only the first. */
  readonly onError: (error: Error) => void;
  readonly random?: () => number;
}

interface Item {
  /** Of its first submission. */
  readonly serial: number;
  readonly trigger: Trigger;
  readonly options: RequestOptions;
  readonly onTried: () => void;
}

/** The requests of one key that Redis has not accepted yet. */
interface Entry {
  readonly id: string;
  readonly key: ObjectKey;
  /** In the order of their submission. */
  items: Item[];
  /** The items that are being sent. */
  sending: readonly Item[];
  failures: number;
  /** Whether it waits for a try, is being sent, or backs off. */
  state: "ready" | "sent" | "refused";
}

/** Keys whose requests are sent at the same time: several script calls, so that a slow network does not limit the rate. */
const AT_ONCE = 256;
/** Requests kept per key, as many as Redis keeps triggers. Older ones are merged. */
const ITEMS_KEPT = 20;
const REFUSED: BackoffPolicy = {
  baseMs: 100,
  factor: 2,
  capMs: 5_000,
  steps: Infinity,
  jitter: { kind: "equal" },
};

/**
 * Sends requests until Redis accepts them: different keys concurrently, those of one key in order. A key that Redis refuses
 * backs off alone. The number of entries is bounded by the number of keys.
 */
export class SubmittedRequests {
  readonly #options: SubmittedRequestsOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #ready = new Set<Entry>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #sending = 0;
  /** The latest try had no answer. Until one succeeds, a new key waits for its first retry instead of the deadline. */
  #isAway = false;
  #closing: PromiseWithResolvers<void> | undefined;
  #serial = 0;
  readonly #waiting = new Set<() => void>();

  constructor(options: SubmittedRequestsOptions) {
    this.#options = options;
  }

  /** Resolves when the request was accepted, or refused for the first time; never rejects. */
  submit(key: ObjectKey, trigger: Trigger, options: RequestOptions = {}): Promise<void> {
    const id = this.#idOf(key);
    if (id === undefined || this.#closing !== undefined) return Promise.resolve();
    const tried = Promise.withResolvers<void>();
    const entry =
      this.#entries.get(id) ??
      this.#add({ id, key, items: [], sending: [], failures: 0, state: "ready" });
    this.#serial += 1;
    const item = { serial: this.#serial, trigger, options, onTried: tried.resolve };
    entry.items = merged([...entry.items, item]);
    if (entry.state === "refused") tried.resolve();
    if (entry.state === "ready") this.#makeReady(entry);
    return tried.promise;
  }

  /** Resolves when every request that was submitted before has been accepted. @throws the reason of `signal` */
  async accepted(signal: AbortSignal): Promise<void> {
    const last = this.#serial;
    while (this.#hasUpTo(last)) {
      signal.throwIfAborted();
      const { promise, resolve } = Promise.withResolvers<void>();
      const wake = () => resolve();
      this.#waiting.add(wake);
      signal.addEventListener("abort", wake, { once: true });
      await promise;
      this.#waiting.delete(wake);
      signal.removeEventListener("abort", wake);
    }
  }

  #hasUpTo(serial: number): boolean {
    for (const { items, sending } of this.#entries.values()) {
      const oldest = sending[0] ?? items[0];
      if (oldest !== undefined && oldest.serial <= serial) return true;
    }
    return false;
  }

  /** Tries every request that did not fail yet, and drops the others: the next leader repeats them. */
  async close(): Promise<void> {
    this.#closing ??= Promise.withResolvers<void>();
    for (const timer of this.#timers) clearTimeout(timer);
    this.#endIfIdle();
    await this.#closing.promise;
  }

  /** Undefined for an invalid key, which Redis would never accept. */
  #idOf(key: ObjectKey): string | undefined {
    try {
      return formatKey(key);
    } catch (error) {
      this.#options.onError(ensureError(error));
      return undefined;
    }
  }

  #add(entry: Entry): Entry {
    this.#entries.set(entry.id, entry);
    return entry;
  }

  #makeReady(entry: Entry): void {
    if (this.#isAway && entry.failures === 0) return this.#backOff(entry);
    entry.state = "ready";
    this.#ready.add(entry);
    this.#pump();
  }

  #pump(): void {
    for (const entry of this.#ready) {
      if (this.#sending >= AT_ONCE) return;
      this.#ready.delete(entry);
      void this.#send(entry);
    }
    this.#endIfIdle();
  }

  async #send(entry: Entry): Promise<void> {
    const items = entry.items;
    entry.items = [];
    entry.sending = items;
    entry.state = "sent";
    this.#sending += 1;
    const results = await Promise.allSettled(
      items.map(({ trigger, options }) => this.#options.request(entry.key, trigger, options)),
    );
    this.#sending -= 1;
    entry.sending = [];
    reportTried(items);
    const failedAt = results.findIndex(({ status }) => status === "rejected");
    const failure = results[failedAt];
    if (failure?.status === "rejected") {
      // From the first failed one on, so that the latest generation and version stay the latest.
      entry.items = merged([...items.slice(failedAt), ...entry.items]);
      this.#refused(entry, ensureError(failure.reason));
    } else {
      this.#accepted(entry);
    }
    this.#pump();
  }

  #accepted(entry: Entry): void {
    this.#isAway = false;
    entry.failures = 0;
    if (entry.items.length === 0) this.#entries.delete(entry.id);
    else this.#makeReady(entry);
    for (const resolve of this.#waiting) resolve();
  }

  #refused(entry: Entry, error: Error): void {
    const wasAway = this.#isAway;
    this.#isAway = isWithoutAnswer(error);
    if (!(wasAway && this.#isAway)) {
      const message = `request for ${entry.id} failed and is repeated: ${error.message}`;
      this.#options.onError(new KonvergeError("redis_unavailable", message, { cause: error }));
    }
    this.#backOff(entry);
  }

  #backOff(entry: Entry): void {
    reportTried(entry.items);
    if (this.#closing !== undefined) {
      this.#entries.delete(entry.id);
      return;
    }
    const step = nextDelay(REFUSED, entry.failures, this.#options.random ?? Math.random);
    entry.failures += 1;
    entry.state = "refused";
    const timer = setTimeout(
      () => {
        this.#timers.delete(timer);
        this.#makeReady(entry);
      },
      step.kind === "wait" ? step.afterMs : REFUSED.capMs,
    );
    this.#timers.add(timer);
  }

  #endIfIdle(): void {
    if (this.#sending === 0 && this.#ready.size === 0) this.#closing?.resolve();
  }
}

function reportTried(items: readonly Item[]): void {
  for (const { onTried } of items) onTried();
}

/** The server or the connection was unavailable, as opposed to an error that Redis returned. */
function isWithoutAnswer(error: Error): boolean {
  if (!isKonvergeError(error) || error.code !== "redis_unavailable") return false;
  return !(error.cause instanceof Error && error.cause.name === "ReplyError");
}

/** Merges the oldest of too many requests of a key, so that none of their effects is lost. */
function merged(items: Item[]): Item[] {
  while (items.length > ITEMS_KEPT) {
    const [older, newer, ...rest] = items;
    if (older === undefined || newer === undefined) break;
    items = [merge(older, newer), ...rest];
  }
  return items;
}

function merge(older: Item, newer: Item): Item {
  const classes = [older, newer].map(({ options }) => options.class ?? "event");
  const [first = "event", second = "event"] = classes;
  const seen = { ...older.trigger.seen, ...newer.trigger.seen };
  const { uid, isDeleted } = (newer.options.uid === undefined ? older : newer).options;
  return {
    serial: older.serial,
    trigger: {
      ...older.trigger,
      ...newer.trigger,
      ...(Object.keys(seen).length === 0 ? {} : { seen }),
    },
    options: {
      class: rankOf(first) < rankOf(second) ? first : second,
      news: [older, newer].some(({ options }) => isNews(options)),
      ...defined({ uid, isDeleted }),
    },
    onTried() {
      older.onTried();
      newer.onTried();
    },
  };
}

function isNews({ class: requestClass = "event", news }: RequestOptions): boolean {
  return news ?? isNewEventByDefault(requestClass);
}
