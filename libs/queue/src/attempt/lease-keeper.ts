import { KonvergeError } from "@konverge/core";

/** The reason of an attempt's abort signal. */
export class AttemptCancelledError extends KonvergeError {
  override readonly name = "AttemptCancelledError";
  readonly reason: "leaseLost" | "shutdown" | "person";

  constructor(reason: AttemptCancelledError["reason"], message: string) {
    super("cancelled", message);
    this.reason = reason;
  }
}

/** An attempt of this process with its lease. */
interface HeldLease {
  readonly id: string;
  readonly jobId: string;
  readonly epoch: number;
  readonly controller: AbortController;
  /** On the local monotonic clock, ms. */
  expiresAtMs: number;
}

export interface LeaseKeeper {
  /** `askedAtMs`: local time of the lease request, so that the expiry is never overestimated. */
  hold(lease: Omit<HeldLease, "expiresAtMs" | "controller">, askedAtMs: number): HeldLease;
  release(lease: HeldLease): void;
  /** Renews the key leases of jobs whose locks BullMQ has renewed. */
  renewed(jobIds: readonly string[]): Promise<void>;
  /** Aborts the attempts of jobs whose locks BullMQ could not renew: another worker may run their keys. */
  lost(jobIds: readonly string[]): void;
  /** Aborts attempts that a user cancelled, by key and epoch. Ignores attempts of other workers. */
  cancel(aborts: Readonly<Record<string, string>>): void;
  /** Aborts all attempts, including those that begin later. */
  abortAll(reason: AttemptCancelledError): void;
  close(): void;
}

export interface LeaseKeeperOptions {
  readonly leaseMs: number;
  readonly renew: (leases: readonly HeldLease[]) => Promise<boolean[]>;
  readonly clock?: () => number;
}

/**
 * Renews leases and aborts attempts whose lease is lost. Also checks the local clock: a suspended process, or one without
 * Redis, must detect the expiry by itself (P8).
 */
export function createLeaseKeeper(options: LeaseKeeperOptions): LeaseKeeper {
  const { leaseMs, renew, clock = () => performance.now() } = options;
  const held = new Map<string, HeldLease>();
  let endedBy: AttemptCancelledError | undefined;
  const abort = (lease: HeldLease, why: string) => {
    lease.controller.abort(
      new AttemptCancelledError("leaseLost", `lease of ${lease.id} lost: ${why}`),
    );
  };
  const watch = setInterval(() => {
    const nowMs = clock();
    for (const lease of held.values()) {
      if (lease.expiresAtMs <= nowMs && !lease.controller.signal.aborted) {
        abort(lease, `not renewed within ${leaseMs} ms`);
      }
    }
  }, leaseMs / 8);

  return {
    hold(fields, askedAtMs) {
      const controller = new AbortController();
      const lease: HeldLease = { ...fields, controller, expiresAtMs: askedAtMs + leaseMs };
      held.set(lease.jobId, lease);
      if (endedBy !== undefined) controller.abort(endedBy);
      return lease;
    },
    release(lease) {
      if (held.get(lease.jobId) === lease) held.delete(lease.jobId);
    },
    async renewed(jobIds) {
      const leases = jobIds.flatMap((jobId) => held.get(jobId) ?? []);
      if (leases.length === 0) return;
      const askedAtMs = clock();
      const answers = await renew(leases);
      for (const [index, lease] of leases.entries()) {
        if (answers[index] === true) lease.expiresAtMs = askedAtMs + leaseMs;
        else if (held.get(lease.jobId) === lease) abort(lease, "another epoch has taken over");
      }
    },
    lost(jobIds) {
      for (const jobId of jobIds) {
        const lease = held.get(jobId);
        if (lease !== undefined) abort(lease, "the job's lock could not be renewed");
      }
    },
    cancel(aborts) {
      for (const { id, epoch, controller } of held.values()) {
        if (aborts[id] !== String(epoch) || controller.signal.aborted) continue;
        controller.abort(new AttemptCancelledError("person", `a user cancelled ${id}`));
      }
    },
    abortAll(reason) {
      endedBy = reason;
      for (const { controller } of held.values()) controller.abort(reason);
    },
    close: () => clearInterval(watch),
  };
}
