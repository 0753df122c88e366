import { KonvergeError } from "@konverge/core";

/** Why an attempt was told to stop; the reason of its signal. */
export class AttemptCancelledError extends KonvergeError {
  override readonly name = "AttemptCancelledError";
  readonly reason: "leaseLost" | "shutdown" | "person";

  constructor(reason: AttemptCancelledError["reason"], message: string) {
    super("cancelled", message);
    this.reason = reason;
  }
}

/** An attempt of this process and what it needs to stay the only one of its key. */
interface HeldLease {
  readonly id: string;
  readonly jobId: string;
  readonly epoch: number;
  readonly controller: AbortController;
  /** On the local monotonic clock, ms. */
  expiresAtMs: number;
}

export interface LeaseKeeper {
  /** `askedAtMs`: when the lease was asked for (local clock), so that it never seems to live longer than it does. */
  hold(lease: Omit<HeldLease, "expiresAtMs" | "controller">, askedAtMs: number): HeldLease;
  release(lease: HeldLease): void;
  /** BullMQ has renewed these jobs' locks: the key leases follow. */
  renewed(jobIds: readonly string[]): Promise<void>;
  /** BullMQ could not: somebody else may run these keys by now. */
  lost(jobIds: readonly string[]): void;
  /** Aborts what a person has cancelled, by key and epoch; others' attempts are left alone. */
  cancel(aborts: Readonly<Record<string, string>>): void;
  /** Also those whose begin is still on its way. */
  abortAll(reason: AttemptCancelledError): void;
  close(): void;
}

export interface LeaseKeeperOptions {
  readonly leaseMs: number;
  readonly renew: (leases: readonly HeldLease[]) => Promise<boolean[]>;
  readonly clock?: () => number;
}

/**
 * Renews leases and aborts attempts that have lost theirs. It also watches its own clock: a process that was stopped, or
 * cannot reach Redis, must find out by itself (P8).
 */
export function createLeaseKeeper(options: LeaseKeeperOptions): LeaseKeeper {
  const { leaseMs, renew, clock = () => performance.now() } = options;
  const held = new Map<string, HeldLease>();
  let endedBy: AttemptCancelledError | undefined;
  const abort = (lease: HeldLease, why: string) => {
    lease.controller.abort(
      new AttemptCancelledError("leaseLost", `the lease of ${lease.id} was lost: ${why}`),
    );
  };
  const watch = setInterval(() => {
    const nowMs = clock();
    for (const lease of held.values()) {
      if (lease.expiresAtMs <= nowMs && !lease.controller.signal.aborted) {
        abort(lease, `it was not renewed within ${leaseMs} ms`);
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
        if (lease !== undefined) abort(lease, "the lock of its job could not be renewed");
      }
    },
    cancel(aborts) {
      for (const { id, epoch, controller } of held.values()) {
        if (aborts[id] !== String(epoch) || controller.signal.aborted) continue;
        controller.abort(new AttemptCancelledError("person", `a person cancelled ${id}`));
      }
    },
    abortAll(reason) {
      endedBy = reason;
      for (const { controller } of held.values()) controller.abort(reason);
    },
    close: () => clearInterval(watch),
  };
}
