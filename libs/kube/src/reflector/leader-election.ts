import { ensureError, sleepMs, type ApiObject, type ResourceType } from "@konverge/core";
import type { KubeClient } from "../contract/kube-client.ts";
import { isAlreadyExists, isConflict, isNotFound } from "../errors/kube-api-error.ts";

interface LeaseSpec {
  holderIdentity?: string;
  leaseDurationSeconds?: number;
  acquireTime?: string;
  renewTime?: string;
  leaseTransitions?: number;
}
export interface Lease extends ApiObject {
  spec?: LeaseSpec;
}

export const LEASE: ResourceType<Lease> = {
  group: "coordination.k8s.io",
  version: "v1",
  kind: "Lease",
  resource: "leases",
  scope: "Namespaced",
};

export interface LeaderElectionOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  /** Name of the Lease. */
  readonly name: string;
  /** Unique per process. */
  readonly identity: string;
  /** Called each time leadership is gained; the signal is aborted when it is lost or given up. */
  readonly onStartedLeading: (leading: AbortSignal) => void;
  /** Told of a try that failed for another reason than that somebody else leads. */
  readonly onError: (error: Error) => void;
  /** A lease not renewed for this long may be taken. Default 15 s. Shorter fails over sooner and writes more often. */
  readonly leaseDurationMs?: number;
  /** A leader that could not renew for this long stops leading. Default 10 s; below the lease duration. */
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
   * Stops trying and releases the Lease, so that the next one need not wait for its end. The signal ends the call that
   * releases it.
   * @throws what the API server or the way to it said; the Lease then runs out by itself
   */
  stop(options?: { readonly signal?: AbortSignal }): Promise<void>;
}

/** client-go's JitterFactor: the acquire loop waits 1 to 2.2 retry periods. */
const JITTER_FACTOR = 1.2;

/**
 * Leader election on a Lease, by client-go's algorithm and constants: only local time since the record was last seen to
 * change counts, so clocks may differ. It elects, it does not fence: two may believe to lead for a moment.
 */
export function startLeaderElection(options: LeaderElectionOptions): LeaderElection {
  const { leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2_000 } = options;
  const { clock = () => performance.now(), random = Math.random } = options;
  if (!(leaseDurationMs > renewDeadlineMs && renewDeadlineMs > retryPeriodMs * JITTER_FACTOR)) {
    throw new RangeError(
      `wanted leaseDurationMs > renewDeadlineMs > retryPeriodMs * ${JITTER_FACTOR}, got ${leaseDurationMs}, ${renewDeadlineMs}, ${retryPeriodMs}`,
    );
  }
  const stopping = new AbortController();
  const record = createLeaseRecord(options, { leaseDurationMs, clock });
  let leading: AbortController | undefined;

  const run = async () => {
    while (!stopping.signal.aborted) {
      const triedAtMs = clock();
      if (await attempt()) await lead(triedAtMs);
      else await pause(retryPeriodMs * (1 + random() * JITTER_FACTOR));
    }
  };
  const attempt = async (atMostMs = Infinity): Promise<boolean> => {
    const timeoutMs = Math.ceil(Math.min(renewDeadlineMs / 2, atMostMs));
    try {
      return await record.tryToHold(
        AbortSignal.any([stopping.signal, AbortSignal.timeout(timeoutMs)]),
      );
    } catch (error) {
      if (!stopping.signal.aborted) options.onError(ensureError(error));
      return false;
    }
  };
  const lead = async (sinceMs: number) => {
    const mine = new AbortController();
    leading = mine;
    options.onStartedLeading(mine.signal);
    // From before each try, since others count from when they see what it wrote.
    let renewedAtMs = sinceMs;
    const leftMs = () => renewedAtMs + renewDeadlineMs - clock();
    for (;;) {
      // Neither a pause nor a call that hangs may last beyond the deadline.
      await pause(Math.min(retryPeriodMs, Math.max(0, leftMs())));
      if (stopping.signal.aborted || leftMs() <= 0) break;
      const triedAtMs = clock();
      if (await attempt(leftMs())) renewedAtMs = triedAtMs;
    }
    leading = undefined;
    mine.abort(new Error("leadership ended"));
  };
  const pause = (ms: number) =>
    sleepMs(ms, stopping.signal).catch((error: unknown) => {
      if (!stopping.signal.aborted) throw error;
    });

  const running = run();
  return {
    get isLeader() {
      return leading !== undefined;
    },
    async stop({ signal } = {}) {
      stopping.abort(new Error("election stopped"));
      await running;
      await record.release(signal);
    },
  };
}

interface LeaseRecord {
  /** Takes or renews the Lease; false when somebody else holds it or won the race. */
  tryToHold(signal: AbortSignal): Promise<boolean>;
  release(signal: AbortSignal | undefined): Promise<void>;
}

function createLeaseRecord(
  { client, namespace, name, identity }: LeaderElectionOptions,
  { leaseDurationMs, clock }: { readonly leaseDurationMs: number; readonly clock: () => number },
): LeaseRecord {
  const target = { namespace, name };
  let seen: { readonly text: string; readonly atMs: number } | undefined;
  let held: Lease | undefined;
  /** Also after a write of which nobody knows whether it arrived: who never held the Lease has nothing to give back. */
  let mayBeOurs = false;

  const specOf = (previous: LeaseSpec | undefined): LeaseSpec => {
    const renewTime = microTime(new Date());
    const keeps = previous?.holderIdentity === identity;
    return {
      holderIdentity: identity,
      leaseDurationSeconds: Math.max(1, Math.round(leaseDurationMs / 1_000)),
      acquireTime: keeps ? (previous.acquireTime ?? renewTime) : renewTime,
      renewTime,
      leaseTransitions:
        (previous?.leaseTransitions ?? 0) + (keeps || previous === undefined ? 0 : 1),
    };
  };
  const write = async (run: () => Promise<Lease>): Promise<boolean> => {
    try {
      mayBeOurs = true;
      held = await run();
      seen = { text: JSON.stringify(held.spec), atMs: clock() };
      return true;
    } catch (error) {
      held = undefined;
      if (isConflict(error) || isAlreadyExists(error)) return false;
      throw error;
    }
  };

  return {
    async tryToHold(signal) {
      const bound = client.scoped({ signal, priority: "critical" });
      const known = held;
      if (
        known !== undefined &&
        (await write(() => bound.replace(LEASE, { ...known, spec: specOf(known.spec) })))
      ) {
        return true;
      }
      const found = await bound.get(LEASE, target).catch((error: unknown) => {
        if (isNotFound(error)) return undefined;
        throw error;
      });
      if (found === undefined) {
        return write(() =>
          bound.create(LEASE, {
            apiVersion: "coordination.k8s.io/v1",
            kind: "Lease",
            metadata: target,
            spec: specOf(undefined),
          }),
        );
      }
      const text = JSON.stringify(found.spec);
      if (seen?.text !== text) seen = { text, atMs: clock() };
      const holder = found.spec?.holderIdentity ?? "";
      const lastsMs = (found.spec?.leaseDurationSeconds ?? 0) * 1_000;
      mayBeOurs = holder === identity;
      if (holder !== "" && holder !== identity && clock() - seen.atMs < lastsMs) return false;
      return write(() => bound.replace(LEASE, { ...found, spec: specOf(found.spec) }));
    },
    async release(signal) {
      if (!mayBeOurs) return;
      const bound = signal === undefined ? client : client.scoped({ signal });
      const found = await bound.get(LEASE, target).catch((error: unknown) => {
        if (isNotFound(error)) return undefined;
        throw error;
      });
      mayBeOurs = found?.spec?.holderIdentity === identity;
      if (!mayBeOurs || found === undefined) return;
      const spec: LeaseSpec = {
        ...found.spec,
        holderIdentity: "",
        leaseDurationSeconds: 1,
        renewTime: microTime(new Date()),
      };
      await write(() => bound.replace(LEASE, { ...found, spec }));
      mayBeOurs = false;
    },
  };
}

/** MicroTime wants exactly six fractional digits. */
function microTime(date: Date): string {
  return date.toISOString().replace("Z", "000Z");
}
