import { defined, KonvergeError, type ObjectKey } from "@konverge/core";
import {
  applying,
  demandNewest,
  proposed,
  type Approval,
  type ApprovalStore,
  type AttemptLease,
  type Requesters,
} from "@konverge/queue";
import type { PlanRecord } from "@konverge/records";
import type { ApprovalRule } from "../define/approval-rule.ts";

/** The approval of the plan of one attempt. */
export interface ApprovalGate {
  /** The state of the key, as stored before the attempt. */
  read(): Promise<Approval | undefined>;
  /** Returns true if the record of the stored plan was dropped, so that no user can decide about it. */
  isDropped(): Promise<boolean>;
  /** Adds the users who have requested the attempt to a plan that waits. */
  join(): Promise<Approval | undefined>;
  /** Stores the plan, and returns the decisions about it. `salt`: the key of its digests. */
  propose(record: PlanRecord, salt: string): Promise<Approval>;
  /**
   * Marks the approved plan as being applied by this attempt. Called before each effect, because another attempt may
   * have begun while the worker was suspended. @throws KonvergeError `approval_stale`
   */
  begin(hash: string): Promise<void>;
  /** Removes the approval of the plan that this attempt has applied. */
  finish(hash: string): Promise<void>;
  /** Removes the approval, because the attempt needs none. */
  drop(): Promise<void>;
  /** Forgets the users whose requests this attempt has applied. */
  forgetRequesters(): Promise<void>;
}

export interface GateParts {
  readonly approvals: ApprovalStore;
  readonly rule: Required<ApprovalRule>;
  /** Returns the epoch of the newest attempt of a key. */
  readonly newestEpoch: (key: ObjectKey) => Promise<number | undefined>;
}

/** Notes the users who have requested the attempt, and returns its gate. */
export async function openApprovalGate(
  { id: key, key: objectKey, epoch, triggers }: AttemptLease,
  { approvals, rule: { by, role }, newestEpoch }: GateParts,
): Promise<ApprovalGate> {
  const { controller } = objectKey;
  const attempt = `${key}#${epoch}`;
  const asked = requestersOf(triggers);
  const applied = await noteRequesters(approvals, key, asked);
  const requesters = [...applied.keys()];
  const isRequested = asked.length > 0;
  /**
   * Changes the approval, unless a newer attempt has changed it. The worker of this attempt may have been suspended.
   */
  const change = async <Next extends Approval | undefined>(
    next: (current: Approval | undefined) => Next,
    options?: { readonly record: string },
  ): Promise<Next> => {
    const guarded = (current: Approval | undefined) => {
      demandNewest(current, epoch);
      return next(current);
    };
    try {
      return await approvals.change(key, guarded, options);
    } catch (error) {
      if (!(await hasRestarted())) throw error;
      return await approvals.change(key, next, options);
    }
  };
  /** True if the queue has lost its data, and its epochs began again, but Redis has kept the approvals on another node. */
  const hasRestarted = async () => {
    const stored = (await approvals.read(key))?.epoch;
    return stored !== undefined && stored > epoch && (await newestEpoch(objectKey)) === epoch;
  };

  return {
    read: () => approvals.read(key),
    isDropped: async () => (await approvals.readPlan(key)) === undefined,
    join: () =>
      change((current) =>
        current === undefined
          ? undefined
          : proposed(current, { ...current, by, role, requesters, epoch }, { isRequested }),
      ),
    propose: (record, salt) => {
      const { hash, summary, startedAt: since, uid, versionBefore: version } = record;
      const object = defined({ uid, version });
      const proposal = { key, controller, hash, summary, by, role, requesters, since, ...object };
      return change((current) => proposed(current, { ...proposal, salt, epoch }, { isRequested }), {
        record: JSON.stringify(record),
      });
    },
    begin: async (hash) => {
      await change((current) => {
        const next = applying(current, { hash, attempt });
        if (next !== undefined) return next;
        const detail = `the plan ${hash.slice(0, 12)} of ${key} is no longer approved`;
        throw new KonvergeError("approval_stale", `${detail}; the key is planned again`);
      });
    },
    finish: async (hash) => {
      await change((current) => {
        const isOurs = current?.attempt === attempt || current?.state === "approved";
        return isOurs && current.hash === hash ? undefined : current;
      });
    },
    drop: async () => {
      await change(() => undefined);
    },
    forgetRequesters: () => approvals.forgetRequesters(key, applied),
  };
}

/** Returns all users whose requests no attempt has applied. A process of an older version may have made a request. */
async function noteRequesters(
  approvals: ApprovalStore,
  key: string,
  asked: readonly string[],
): Promise<Requesters> {
  const noted = await approvals.requesters(key);
  const others = asked.filter((name) => !noted.has(name));
  if (others.length === 0) return noted;
  await Promise.all(others.map((name) => approvals.noteRequester(key, name)));
  return await approvals.requesters(key);
}

/** The users who have requested the attempt. */
function requestersOf(triggers: AttemptLease["triggers"]): string[] {
  const names = triggers.flatMap(({ kind, by }) =>
    (kind === "http" || kind === "cli") && by !== undefined ? [by] : [],
  );
  return [...new Set(names)];
}
