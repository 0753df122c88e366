import { KonvergeError, LIMIT, type HeldPermit } from "@konverge/core";
import type { Schedule } from "../timers.ts";

/** The lease ends here before it ends in Redis, so that a body can stop in time. */
const LEASE_MS = (LIMIT.leaseUs / 1_000) * 0.9;

interface Slot {
  readonly limit: string;
  readonly key: string;
  readonly holder: string;
  readonly lost: AbortController;
  cancelTimer: () => void;
}

/** The slots of one key of a limit in this process. */
export interface SlotGroup {
  readonly limit: string;
  readonly key: string;
  readonly holders: readonly string[];
}

export interface HeldSlotsOptions {
  readonly clock: () => number;
  readonly schedule: Schedule;
  /** Called once per slot that its holder frees. */
  readonly onRelease: (limit: string, key: string, holder: string) => void;
}

/** The slots that this process holds. Each ends unless it is renewed, also while the process is stopped. */
export class HeldSlots {
  readonly #options: HeldSlotsOptions;
  readonly #slots = new Map<string, Slot>();

  constructor(options: HeldSlotsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#slots.size;
  }

  /** `sentMs`: when the request was sent that Redis has granted. */
  add(
    limit: string,
    key: string,
    { holder, sentMs }: { holder: string; sentMs: number },
  ): HeldPermit {
    const lost = new AbortController();
    const slot: Slot = { limit, key, holder, lost, cancelTimer: () => undefined };
    this.#slots.set(holder, slot);
    this.renewed(holder, sentMs);
    return {
      signal: lost.signal,
      release: () => {
        if (!this.#remove(holder)) return;
        this.#options.onRelease(limit, key, holder);
      },
    };
  }

  groups(): SlotGroup[] {
    const groups = Map.groupBy(this.#slots.values(), ({ limit, key }) => `${limit}\n${key}`);
    return [...groups.values()].flatMap((slots) => {
      const [first] = slots;
      if (first === undefined) return [];
      return { limit: first.limit, key: first.key, holders: slots.map(({ holder }) => holder) };
    });
  }

  /** Counts the slots per limit. */
  counts(): Map<string, number> {
    const counts = new Map<string, number>();
    for (const { limit } of this.#slots.values()) counts.set(limit, (counts.get(limit) ?? 0) + 1);
    return counts;
  }

  renewed(holder: string, sentMs: number): void {
    const slot = this.#slots.get(holder);
    if (slot === undefined) return;
    slot.cancelTimer();
    const leftMs = Math.max(0, sentMs + LEASE_MS - this.#options.clock());
    slot.cancelTimer = this.#options.schedule(leftMs, () => this.lose(holder));
  }

  /** The slot may have another holder. */
  lose(holder: string): void {
    const slot = this.#slots.get(holder);
    if (slot === undefined) return;
    this.#remove(holder);
    const detail = `the slot of limit "${slot.limit}" was lost, because this process did not renew it in time`;
    slot.lost.abort(new KonvergeError("deferred", detail, { retryAfterMs: 1_000 }));
  }

  #remove(holder: string): boolean {
    this.#slots.get(holder)?.cancelTimer();
    return this.#slots.delete(holder);
  }
}
