import {
  defined,
  ensureError,
  findCause,
  isKonvergeError,
  KonvergeError,
  namespaceSegment,
  resourceId,
  sleepMs,
  type CallPriority,
  type ObjectKey,
  type Outcome,
  type ResourceType,
} from "@konverge/core";
import { isConflict, isKubeApiError, isUnauthorized, type KubeClient } from "@konverge/kube";
import { carriedAs, type ObjectLanes } from "@konverge/lanes";
import type {
  AttemptEnd,
  AttemptLease,
  QueueWorker,
  RequestClass,
  WorkQueue,
} from "@konverge/queue";
import type { OpenKind } from "../change/open-kind.ts";
import {
  LaneFencedError,
  type Batch,
  type BatchMutation,
  type RedisMutationStore,
} from "../store/redis-mutation-store.ts";
import { BatchWriter } from "./apply-batch.ts";
import { AttemptNotes } from "./attempt-notes.ts";
import { findClosed } from "./find-closed.ts";
import { markName } from "./mark.ts";
import type { MutationObserver } from "./mutation-observer.ts";

/** Interval in which lost requests are repeated and the open kinds are announced, in ms. */
const SWEEP_EVERY_MS = 5_000;
/** Batches of an object in one attempt. Then others in the queue are next. */
const MAX_BATCHES = 16;
/** Longest wait for the last round at the end, in ms. */
const LAST_ROUND_MS = 1_000;
/** Time until another worker may take an object that this one may not change, in ms. */
const OTHER_WORKER_MS = 2_000;
const CREDENTIALS_AGAIN_MS = 5_000;
const FIELD_MANAGER = "konverge/mutations";

const PRIORITIES: Readonly<Record<RequestClass, CallPriority>> = {
  interactive: "interactive",
  event: "event",
  retry: "retry",
  background: "resync",
};

export interface MutationWorkerOptions {
  readonly store: RedisMutationStore;
  readonly queue: WorkQueue;
  readonly client: KubeClient;
  readonly lanes: ObjectLanes;
  readonly place: { readonly prefix: string; readonly cluster: string };
  /** The kinds that this worker announces as open. */
  readonly kinds: readonly OpenKind[];
  readonly workerId: string;
  readonly concurrency: number;
  readonly onError: (error: Error) => void;
  readonly sweepEveryMs?: number;
  readonly mayStart?: (() => Promise<boolean>) | undefined;
  readonly random?: () => number;
  readonly observer?: MutationObserver;
}

/** Applies the mutations of one cluster: an object is a key of the queue, and an attempt applies its batches. */
export function startMutationWorker(options: MutationWorkerOptions): QueueWorker {
  return new MutationWorker(options);
}

class MutationWorker implements QueueWorker {
  readonly #options: MutationWorkerOptions;
  readonly #worker: QueueWorker;
  readonly #timer: ReturnType<typeof setInterval>;
  #round: Promise<void> = Promise.resolve();
  #isInRound = false;
  #isEnding = false;

  constructor(options: MutationWorkerOptions) {
    this.#options = options;
    const { queue, workerId, concurrency, onError, sweepEveryMs = SWEEP_EVERY_MS } = options;
    const handle = (attempt: AttemptLease) => this.#handle(attempt);
    this.#worker = queue.work({ workerId, concurrency, handle, onError });
    this.#timer = setInterval(() => this.#startRound(), sweepEveryMs);
    this.#startRound();
  }

  get active(): number {
    return this.#worker.active;
  }

  get finished(): number {
    return this.#worker.finished;
  }

  pause(): void {
    this.#worker.pause();
  }

  resume(): void {
    this.#worker.resume();
  }

  async stop(options?: Parameters<QueueWorker["stop"]>[0]): Promise<void> {
    await this.#worker.stop(options);
    await this.#endRounds();
  }

  async kill(): Promise<void> {
    await this.#worker.kill();
    await this.#endRounds();
  }

  async #endRounds(): Promise<void> {
    this.#isEnding = true;
    clearInterval(this.#timer);
    await Promise.race([this.#round, sleepMs(LAST_ROUND_MS)]);
  }

  #startRound(): void {
    if (this.#isInRound) return;
    this.#isInRound = true;
    this.#round = this.#sweep()
      .catch((error: unknown) => this.#options.onError(ensureError(error)))
      .finally(() => {
        this.#isInRound = false;
      });
  }

  async #sweep(): Promise<void> {
    const { store, queue, kinds, mayStart } = this.#options;
    await store.announce(kinds);
    const trigger = { kind: "signal", reason: "overdue mutation" } as const;
    for (let isMore = true; isMore && !this.#isEnding;) {
      // The mutations of a restored Redis may have been applied, so none may end as expired.
      if ((await mayStart?.()) === false) return;
      const swept = await store.sweep();
      await queue.requestMany(swept.due.map((key) => ({ key, trigger })));
      ({ isMore } = swept);
    }
  }

  async #handle(attempt: AttemptLease): Promise<AttemptEnd> {
    const notes = new AttemptNotes(attempt, this.#options.workerId);
    let outcome: Outcome;
    try {
      outcome = await this.#applyAll(attempt, notes);
    } catch (thrown) {
      outcome = this.#outcomeOf(ensureError(thrown), attempt);
      if (outcome.kind === "retry") this.#options.observer?.mutationsFailed();
    }
    return { outcome, record: (backoffMs) => notes.record(outcome, backoffMs) };
  }

  async #applyAll(attempt: AttemptLease, notes: AttemptNotes): Promise<Outcome> {
    const { store } = this.#options;
    const holder = crypto.randomUUID();
    for (let batches = 0; batches < MAX_BATCHES; batches += 1) {
      attempt.signal.throwIfAborted();
      attempt.checkExpiry();
      const batch = await store.take(attempt.id, holder);
      // The mutations are stored on their own, so the queue need not keep the key.
      if (batch === undefined) return { kind: "gone" };
      if (await this.#apply(batch, { attempt, notes, holder })) return { kind: "gone" };
    }
    return { kind: "requeueAfter", afterMs: 0 };
  }

  /** Returns true if the object has no more mutations. */
  async #apply(batch: Batch, { attempt, notes, holder }: Applying): Promise<boolean> {
    const { store, lanes, place, kinds, onError, random = Math.random, observer } = this.#options;
    const [first] = batch.mutations;
    if (first === undefined) return false;
    await this.#demandOpen(batch);
    const target = this.#targetOf(first, attempt, notes);
    const takenMs = performance.now();
    const mayPass = first.subresource !== "scale" && !target.client.isSensitive(target.type);
    const priority = PRIORITIES[attempt.class];
    const turn = await lanes.enter(laneOf(attempt.key), attempt.signal, { priority });
    notes.noteLane(turn.waitedMs);
    const writer = new BatchWriter({
      store,
      target,
      object: attempt.id,
      holder,
      batch,
      mark: markName({ ...place, installation: batch.installation }),
      passed: mayPass && first.subresource === undefined ? carriedAs(turn, target.type) : undefined,
      signal: attempt.signal,
      checkExpiry: attempt.checkExpiry,
      random,
      findRestriction: (mutation) => findClosed(kinds, mutation),
      nowMs: () => batch.takenAtMs + performance.now() - takenMs,
      onWrite: (write) => {
        notes.noteWrite(target, write);
        if (write.mutations > 0) observer?.mutationsWritten(write.mutations);
        if (!write.isMarked) onError(unmarked(attempt.id));
      },
      onConflict: () => observer?.mutationConflicted(),
      onLanded: (durationMs) => observer?.mutationLanded(durationMs),
    });
    try {
      return await writer.run();
    } finally {
      const left = mayPass ? writer.lastKnown : undefined;
      turn.leave(left, { stranger: writer.sawStranger });
    }
  }

  /** A worker with a newer configuration may have opened the kind. @throws KonvergeError `deferred` */
  async #demandOpen({ mutations }: Batch): Promise<void> {
    const { store, kinds } = this.#options;
    const closed = mutations.filter((mutation) => findClosed(kinds, mutation) !== undefined);
    if (closed.length === 0) return;
    const announced = await store.openKinds();
    if (closed.every((mutation) => findClosed(announced, mutation) !== undefined)) return;
    throw new KonvergeError("deferred", "the kind is open in the configuration of another worker", {
      retryAfterMs: OTHER_WORKER_MS,
    });
  }

  #targetOf(
    { object, subresource }: BatchMutation,
    { signal, class: of }: AttemptLease,
    notes: AttemptNotes,
  ) {
    const { group, version, kind, resource, namespace, name } = object;
    const scope = namespace === undefined ? "Cluster" : "Namespaced";
    const type: ResourceType = { group, version, kind, resource, scope };
    const client = this.#options.client.scoped({
      signal,
      priority: PRIORITIES[of],
      fieldManager: FIELD_MANAGER,
      observe: (call) => notes.noteCall(call),
    });
    return {
      client,
      type,
      at: namespace === undefined ? { name } : { namespace, name },
      subresource,
    };
  }

  #outcomeOf(error: Error, { signal }: AttemptLease): Outcome {
    if (error instanceof LaneFencedError || signal.aborted) {
      return { kind: "cancelled", cause: "leaseLost", error };
    }
    const known = findCause(error, isKonvergeError);
    if (known?.code === "deferred") {
      return { kind: "deferred", afterMs: known.retryAfterMs ?? 1_000, cause: known.message };
    }
    if (isUnauthorized(error)) {
      return { kind: "deferred", afterMs: CREDENTIALS_AGAIN_MS, cause: "credentials" };
    }
    if (isConflict(error)) return { kind: "conflict", error };
    if (!isKubeApiError(error)) this.#options.onError(error);
    const retryAfterMs = known?.retryAfterMs;
    return { kind: "retry", error, ...defined({ retryAfterMs }) };
  }
}

interface Applying {
  readonly attempt: AttemptLease;
  readonly notes: AttemptNotes;
  readonly holder: string;
}

/** One lane per object, whatever version of its kind the write uses; the same as of the writes of controllers. */
function laneOf(key: ObjectKey): string {
  return [resourceId(key), namespaceSegment(key.namespace), key.name]
    .map(encodeURIComponent)
    .join("/");
}

function unmarked(object: string): KonvergeError {
  return new KonvergeError(
    "internal",
    `${object} was changed without the annotation of konverge.dev/mutations; an admission webhook may remove it, and mutations may then be applied twice after a crash`,
  );
}
