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
  readonly owner: string;
  readonly controller: AbortController;
  /** Time by which the attempt must be aborted, on the local monotonic clock, in ms. */
  endsAtMs: number;
}

export interface LeaseKeeper {
  /** `askedAtMs`: local time of the lease request, so that the expiry is never overestimated. */
  hold(lease: Omit<HeldLease, "endsAtMs" | "controller">, askedAtMs: number): HeldLease;
  /** Aborts the attempt if its lease has ended: after a suspension, the handler may continue before timers run. */
  check(lease: HeldLease): void;
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
 * Part of the lease that is left when an attempt is aborted, at most `MAX_MARGIN_MS`. A call that was just sent then arrives
 * before another worker begins. Renewals are due after half of the lease.
 */
const MARGIN_SHARE = 0.05;
const MAX_MARGIN_MS = 500;

/**
 * Renews leases and aborts attempts whose lease is lost. Also follows the local clock: a suspended process, or one without
 * Redis, must detect the expiry by itself (P8). One timer serves all leases; it is set for the earliest end.
 */
export function createLeaseKeeper(options: LeaseKeeperOptions): LeaseKeeper {
  const { leaseMs, renew, clock = () => performance.now() } = options;
  const heldMs = leaseMs - Math.min(leaseMs * MARGIN_SHARE, MAX_MARGIN_MS);
  const held = new Map<string, HeldLease>();
  let timer: NodeJS.Timeout | undefined;
  let wakesAtMs = Infinity;
  let endedBy: AttemptCancelledError | undefined;
  const abort = (lease: HeldLease, why: string) => {
    lease.controller.abort(
      new AttemptCancelledError("leaseLost", `lease of ${lease.id} lost: ${why}`),
    );
  };
  const check = (lease: HeldLease) => {
    if (lease.endsAtMs > clock() || lease.controller.signal.aborted) return;
    abort(lease, `not renewed within ${leaseMs} ms`);
  };
  const wakeAt = (atMs: number) => {
    if (atMs >= wakesAtMs) return;
    clearTimeout(timer);
    wakesAtMs = atMs;
    // Timers may run up to a millisecond early.
    timer = setTimeout(checkAll, Math.ceil(Math.max(0, atMs - clock())));
  };
  const checkAll = () => {
    wakesAtMs = Infinity;
    let next = Infinity;
    for (const lease of held.values()) {
      check(lease);
      if (!lease.controller.signal.aborted) next = Math.min(next, lease.endsAtMs);
    }
    if (next !== Infinity) wakeAt(next);
  };

  return {
    hold(fields, askedAtMs) {
      const controller = new AbortController();
      const lease: HeldLease = { ...fields, controller, endsAtMs: askedAtMs + heldMs };
      held.set(lease.jobId, lease);
      if (endedBy !== undefined) controller.abort(endedBy);
      wakeAt(lease.endsAtMs);
      return lease;
    },
    check,
    release(lease) {
      if (held.get(lease.jobId) === lease) held.delete(lease.jobId);
    },
    async renewed(jobIds) {
      const leases = jobIds.flatMap((jobId) => held.get(jobId) ?? []);
      if (leases.length === 0) return;
      const askedAtMs = clock();
      const answers = await renew(leases);
      for (const [index, lease] of leases.entries()) {
        if (answers[index] === true) lease.endsAtMs = askedAtMs + heldMs;
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
    close: () => clearTimeout(timer),
  };
}
