import { ensureError, sleepMs } from "@konverge/core";
import type { KubeClient } from "../contract/kube-client.ts";
import { LeaseRecord } from "./lease-record.ts";

export interface LeaderElectionOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  /** Name of the Lease. */
  readonly name: string;
  /** Unique per process. */
  readonly identity: string;
  /** Called each time leadership is acquired; the signal is aborted when it ends. */
  readonly onStartedLeading: (leading: AbortSignal) => void;
  /** Called for a failed try, except when another candidate leads. */
  readonly onError: (error: Error) => void;
  /**
   * A Lease not renewed for this long may be taken over. Default 15 s. Shorter fails over sooner and writes more often.
   */
  readonly leaseDurationMs?: number;
  /** A leader that could not renew for this long stops leading. Default 10 s; must be below the lease duration. */
  readonly renewDeadlineMs?: number;
  /** Between tries. Default 2 s. */
  readonly retryPeriodMs?: number;
  /** Monotonic, in ms. */
  readonly clock?: () => number;
  readonly random?: () => number;
}

export interface LeaderElection {
  readonly isLeader: boolean;
  /**
   * Stops trying and releases the Lease, so that the next leader need not wait for its expiry. The signal aborts the
   * release call.
   * @throws the error of the release call; the Lease then expires
   */
  stop(options?: { readonly signal?: AbortSignal }): Promise<void>;
}

/** client-go's JitterFactor: the acquire loop waits 1 to 2.2 retry periods. */
const JITTER_FACTOR = 1.2;

/**
 * Starts leader election on a Lease, with client-go's algorithm and constants. Only the local time since the record was
 * last seen to change counts, so clocks may differ. It does not fence: two candidates may briefly both act as leader.
 */
export function startLeaderElection(options: LeaderElectionOptions): LeaderElection {
  const { leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2_000 } = options;
  if (!(leaseDurationMs > renewDeadlineMs && renewDeadlineMs > retryPeriodMs * JITTER_FACTOR)) {
    throw new RangeError(
      `leaseDurationMs > renewDeadlineMs > retryPeriodMs * ${JITTER_FACTOR} must hold (got ${leaseDurationMs}, ${renewDeadlineMs}, ${retryPeriodMs})`,
    );
  }
  return new LeaseElection(options, { leaseDurationMs, renewDeadlineMs, retryPeriodMs });
}

type Periods = Required<
  Pick<LeaderElectionOptions, "leaseDurationMs" | "renewDeadlineMs" | "retryPeriodMs">
>;

class LeaseElection implements LeaderElection {
  readonly #options: LeaderElectionOptions;
  readonly #periods: Periods;
  readonly #clock: () => number;
  readonly #record: LeaseRecord;
  readonly #stopping: AbortController = new AbortController();
  readonly #running: Promise<void>;
  #leading: AbortController | undefined;

  constructor(options: LeaderElectionOptions, periods: Periods) {
    const { client, namespace, name, identity, clock = () => performance.now() } = options;
    const { leaseDurationMs } = periods;
    this.#options = options;
    this.#periods = periods;
    this.#clock = clock;
    this.#record = new LeaseRecord({ client, namespace, name, identity, leaseDurationMs, clock });
    this.#running = this.#run();
  }

  get isLeader(): boolean {
    return this.#leading !== undefined;
  }

  async stop({ signal }: { readonly signal?: AbortSignal } = {}): Promise<void> {
    this.#stopping.abort(new Error("election stopped"));
    await this.#running;
    await this.#record.release(signal);
  }

  async #run(): Promise<void> {
    const { random = Math.random } = this.#options;
    while (!this.#stopping.signal.aborted) {
      const triedAtMs = this.#clock();
      if (await this.#attempt()) await this.#lead(triedAtMs);
      else await this.#pause(this.#periods.retryPeriodMs * (1 + random() * JITTER_FACTOR));
    }
  }

  async #attempt(atMostMs = Infinity): Promise<boolean> {
    const timeoutMs = Math.ceil(Math.min(this.#periods.renewDeadlineMs / 2, atMostMs));
    const stopping = this.#stopping.signal;
    try {
      return await this.#record.tryToHold(
        AbortSignal.any([stopping, AbortSignal.timeout(timeoutMs)]),
      );
    } catch (error) {
      if (!stopping.aborted) this.#options.onError(ensureError(error));
      return false;
    }
  }

  async #lead(sinceMs: number): Promise<void> {
    const leading = new AbortController();
    this.#leading = leading;
    this.#options.onStartedLeading(leading.signal);
    // Counted from before each try, because other candidates count from when they see its write.
    let renewedAtMs = sinceMs;
    const leftMs = () => renewedAtMs + this.#periods.renewDeadlineMs - this.#clock();
    for (;;) {
      // Neither a pause nor a hanging call may exceed the deadline.
      await this.#pause(Math.min(this.#periods.retryPeriodMs, Math.max(0, leftMs())));
      if (this.#stopping.signal.aborted || leftMs() <= 0) break;
      const triedAtMs = this.#clock();
      if (await this.#attempt(leftMs())) renewedAtMs = triedAtMs;
    }
    this.#leading = undefined;
    leading.abort(new Error("leadership ended"));
  }

  async #pause(ms: number): Promise<void> {
    try {
      await sleepMs(ms, this.#stopping.signal);
    } catch (error) {
      if (!this.#stopping.signal.aborted) throw error;
    }
  }
}
