import { defined, KonvergeError } from "@konverge/core";
import {
  applying,
  proposed,
  type Approval,
  type ApprovalStore,
  type AttemptLease,
} from "@konverge/queue";
import type { PlanRecord } from "@konverge/records";
import type { ApprovalRule } from "../define/approval-rule.ts";

/** The approval of the plan of one attempt. */
export interface ApprovalGate {
  /** The state of the key, as stored before the attempt. */
  read(): Promise<Approval | undefined>;
  /** Adds the users who have requested the attempt to a plan that waits. */
  join(): Promise<Approval | undefined>;
  /** Stores the plan, and returns the decisions about it. */
  propose(record: PlanRecord): Promise<Approval>;
  /** Marks the approved plan as being applied; once per attempt. @throws KonvergeError `approval_stale` */
  begin(hash: string): Promise<void>;
  /** Removes the approval of the plan that this attempt has applied. */
  finish(hash: string): Promise<void>;
  /** Removes the approval, because the attempt needs none. */
  drop(): Promise<void>;
}

export function createApprovalGate(
  approvals: ApprovalStore,
  { id: key, key: { controller }, epoch, triggers }: AttemptLease,
  { by, role }: Required<ApprovalRule>,
): ApprovalGate {
  const attempt = `${key}#${epoch}`;
  const requesters = requestersOf(triggers);
  let begun: Promise<void> | undefined;

  const begin = async (hash: string) => {
    await approvals.change(key, (current) => {
      const next = applying(current, { hash, attempt });
      if (next !== undefined) return next;
      const detail = `the plan ${hash.slice(0, 12)} of ${key} is no longer approved`;
      throw new KonvergeError("approval_stale", `${detail}; the key is planned again`);
    });
  };

  return {
    read: () => approvals.read(key),
    join: () =>
      approvals.change(key, (current) =>
        current === undefined ? undefined : proposed(current, { ...current, by, role, requesters }),
      ),
    propose: (record) => {
      const { hash, summary, startedAt: since, uid, versionBefore: version } = record;
      const object = defined({ uid, version });
      const proposal = { key, controller, hash, summary, by, role, requesters, since, ...object };
      return approvals.change(key, (current) => proposed(current, proposal), {
        record: JSON.stringify(record),
      });
    },
    begin: (hash) => (begun ??= begin(hash)),
    finish: async (hash) => {
      await approvals.change(key, (current) => {
        const isOurs = current?.attempt === attempt || current?.state === "approved";
        return isOurs && current.hash === hash ? undefined : current;
      });
    },
    drop: async () => {
      await approvals.change(key, () => undefined);
    },
  };
}

/** The users who have requested the attempt. */
function requestersOf(triggers: AttemptLease["triggers"]): string[] {
  const names = triggers.flatMap(({ kind, by }) =>
    (kind === "http" || kind === "cli") && by !== undefined ? [by] : [],
  );
  return [...new Set(names)];
}
