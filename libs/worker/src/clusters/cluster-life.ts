import { defined, ensureError, isKonvergeError, sleepMs, type KonvergeError } from "@konverge/core";
import type { Log } from "@konverge/engine";
import { readServerVersion, UNUSABLE, type ClusterWorker } from "../cluster-worker.ts";
import type { ProvidedCluster } from "./cluster-provider.ts";
import { credentialsOf } from "./credentials-of.ts";
import type { ClusterState, ClusterStatus } from "./cluster-status.ts";
import { redactReason } from "./redact-reason.ts";

/** First and longest pause between two tries to engage a cluster, in ms, before jitter. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
/** The same for a cluster that is served under another name: it is soon free after a rename. */
const DUPLICATE_PAUSE_MS = 5_000;

export interface ClusterLifeOptions {
  readonly name: string;
  readonly log: Log;
  /** Starts a worker on the cluster. The signal ends the start. */
  readonly engage: (
    cluster: ProvidedCluster,
    options: { readonly signal: AbortSignal; readonly onLost: (error: KonvergeError) => void },
  ) => Promise<ClusterWorker>;
  /** Called after each change of the status. */
  readonly onChanged: () => void;
  /** Called when a cluster that the provider no longer has is disengaged. */
  readonly onEnded: () => void;
}

type Wanted = ProvidedCluster | Error | undefined;

/** Keeps the worker on one cluster equal to what the provider reports: engages, rotates credentials, disengages. */
export class ClusterLife {
  readonly #options: ClusterLifeOptions;
  #wanted: Wanted;
  #engaged: { readonly cluster: ProvidedCluster; readonly worker: ClusterWorker } | undefined;
  /** The worker that is being stopped. */
  #leaving: ClusterWorker | undefined;
  #status: ClusterStatus;
  #unfollow: () => void = () => undefined;
  #failures = 0;
  #version: string | undefined;
  /** Set when another name has taken the cluster. */
  #lost: KonvergeError | undefined;
  #isEnding = false;
  #changed = new AbortController();
  readonly #settled = Promise.withResolvers<void>();
  readonly #running: Promise<void>;

  constructor(options: ClusterLifeOptions, wanted: Wanted) {
    this.#options = options;
    this.#wanted = wanted;
    this.#status = { name: options.name, state: "engaging", since: new Date() };
    this.#running = this.#run();
  }

  get status(): ClusterStatus {
    return this.#status;
  }

  /** The worker on the cluster while it is engaged. */
  get worker(): ClusterWorker | undefined {
    return this.#engaged?.worker;
  }

  /** Aborts the running attempts of the worker, also of one that is being stopped. */
  async kill(): Promise<void> {
    await (this.worker ?? this.#leaving)?.kill();
  }

  /** The cluster as provided, or as last engaged if it cannot be read any more. */
  get cluster(): ProvidedCluster | undefined {
    return this.#wanted instanceof Error ? this.#engaged?.cluster : this.#wanted;
  }

  /** Resolves after the first try to engage it. */
  get settled(): Promise<void> {
    return this.#settled.promise;
  }

  /** An error keeps the worker of an engaged cluster; undefined disengages it. */
  set(wanted: Wanted): void {
    if (isSame(wanted, this.#wanted)) return;
    this.#wanted = wanted;
    this.#changed.abort();
  }

  /** Stops the worker, for the end of the process. */
  async stop(end: (worker: ClusterWorker) => Promise<void>): Promise<void> {
    this.#isEnding = true;
    this.#changed.abort();
    const worker = this.worker ?? this.#leaving;
    if (worker !== undefined) await end(worker);
    await this.#running;
    // Engaged while the stop began.
    if (this.worker !== worker && this.worker !== undefined) await end(this.worker);
  }

  async #run(): Promise<void> {
    while (!this.#isEnding) {
      this.#changed = new AbortController();
      const { signal } = this.#changed;
      const pauseMs = await this.#approach(this.#wanted, signal);
      this.#settled.resolve();
      // oxlint-disable-next-line typescript/no-unnecessary-condition -- changed by stop
      if (this.#isEnding) return;
      await (pauseMs === undefined ? untilAborted(signal) : sleepMs(pauseMs, signal)).catch(
        () => undefined,
      );
    }
  }

  /** Makes one step. @returns after how many ms to try again; undefined: after the next change */
  async #approach(wanted: Wanted, signal: AbortSignal): Promise<number | undefined> {
    if (wanted === undefined) {
      await this.#disengage();
      return undefined;
    }
    const lost = this.#lost;
    this.#lost = undefined;
    if (lost !== undefined) {
      await this.#stopWorker();
      return this.#failed(lost);
    }
    if (wanted instanceof Error) {
      if (this.#engaged === undefined) this.#note("failing", wanted);
      else this.#note("engaged", wanted);
      return undefined;
    }
    if (this.#engaged !== undefined) {
      if (isSame(this.#engaged.cluster, wanted)) {
        this.#note("engaged");
        return undefined;
      }
      if (await this.#rotate(this.#engaged.worker, wanted)) return undefined;
      await this.#stopWorker();
    }
    return await this.#engage(wanted, signal);
  }

  async #engage(cluster: ProvidedCluster, signal: AbortSignal): Promise<number | undefined> {
    if (this.#status.state !== "failing") this.#note("engaging");
    try {
      const worker = await this.#options.engage(cluster, {
        signal,
        onLost: (error) => {
          this.#lost = error;
          this.#changed.abort();
        },
      });
      this.#engaged = { cluster, worker };
      this.#failures = 0;
      this.#note("engaged");
      this.#unfollow = worker.home.guard.onWorkable((isWorkable) => {
        // The guard logs it.
        if (isWorkable) this.#set("engaged");
        else this.#set("failing", UNUSABLE);
      });
      void readServerVersion(worker).then((version) => this.#setVersion(worker, version));
      return undefined;
    } catch (error) {
      return signal.aborted ? undefined : this.#failed(ensureError(error));
    }
  }

  /** @returns the delay before the next try, in ms */
  #failed(error: Error): number {
    this.#note("failing", error);
    const isDuplicate = isKonvergeError(error) && error.code === "duplicate_cluster";
    const longestMs = isDuplicate ? DUPLICATE_PAUSE_MS : LONGEST_PAUSE_MS;
    const pauseMs = Math.min(longestMs, FIRST_PAUSE_MS * 2 ** this.#failures++);
    return pauseMs * (0.75 + Math.random() / 2);
  }

  /** Replaces the credentials of the running worker. @returns false if it must be started again */
  async #rotate(worker: ClusterWorker, cluster: ProvidedCluster): Promise<boolean> {
    const isSameCluster =
      JSON.stringify(this.#engaged?.cluster.options) === JSON.stringify(cluster.options);
    const credentials = credentialsOf(cluster);
    if (!isSameCluster || credentials === undefined) return false;
    if (!(await worker.home.rotate(credentials, worker.uid))) return false;
    this.#engaged = { cluster, worker };
    this.#options.log.info({}, "cluster credentials rotated");
    this.#note("engaged");
    return true;
  }

  async #disengage(): Promise<void> {
    this.#note("disengaging");
    await this.#stopWorker();
    this.#options.log.info({}, "cluster disengaged");
    // If the provider has reported the cluster again in the meantime, the next step engages it.
    if (this.#wanted !== undefined || this.#isEnding) return;
    this.#isEnding = true;
    this.#options.onEnded();
  }

  async #stopWorker(): Promise<void> {
    this.#unfollow();
    this.#leaving = this.#engaged?.worker;
    this.#engaged = undefined;
    this.#version = undefined;
    await this.#leaving?.stop();
    this.#leaving = undefined;
  }

  #note(state: ClusterState, error?: Error): void {
    const reason = error && redactReason(error, this.#wanted);
    if (this.#set(state, reason)) this.#report(error);
  }

  #setVersion(worker: ClusterWorker, version: string | undefined): void {
    if (worker !== this.worker || version === undefined) return;
    this.#version = version;
    this.#status = { ...this.#status, serverVersion: version };
    this.#options.onChanged();
  }

  /** Returns false without a change. */
  #set(state: ClusterState, reason?: string): boolean {
    if (state === this.#status.state && reason === this.#status.reason) return false;
    const since = state === this.#status.state ? this.#status.since : new Date();
    const { name } = this.#options;
    this.#status = { name, state, since, ...defined({ reason, serverVersion: this.#version }) };
    this.#options.onChanged();
    return true;
  }

  #report(error: Error | undefined): void {
    const { log } = this.#options;
    const { state } = this.#status;
    if (error !== undefined) log.warn({ state, err: error }, "cluster not usable as provided");
    else if (state === "engaged") log.info({}, "cluster engaged");
  }
}

/** Credentials included: equal texts need nothing. */
function isSame(left: Wanted, right: Wanted): boolean {
  if (left === right) return true;
  if (left instanceof Error || right instanceof Error) {
    return left instanceof Error && right instanceof Error && left.message === right.message;
  }
  return JSON.stringify(left) === JSON.stringify(right);
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
