import type { AttemptRecord } from "@konverge/records";
import type { KubeClient } from "@konverge/kube";
import type { AttemptLease } from "@konverge/queue";
import type { Controller } from "../define/define-controller.ts";
import type { Log } from "../define/log.ts";
import { emitEvent } from "./emit-event.ts";

/** Consecutive conflicts that are reported. From then on the queue uses the failure backoff. */
const REPORTED_CONFLICTS = 50;
/** Consecutive failures that are reported, and again after as many more. By default, keys are retried forever. */
const REPORTED_FAILURES = 25;
const FAILED: ReadonlySet<string> = new Set(["retry", "rejected"]);
/** Consecutive lost attempts after which the handler is a more likely cause than its node. */
const REPORTED_LOST = 2;
const EPISODE_MS = 60_000;

/** Reports keys with repeated conflicts, failures or lost attempts, by a log line and an Event for the object. */
export interface FailureAlerts {
  readonly ended: (attempt: AttemptLease, record: AttemptRecord) => void;
  /** Called for lost attempts of a key. */
  readonly lost: (key: string, consecutive: number) => void;
}

export interface FailureAlertsOptions {
  readonly client: KubeClient;
  readonly controller: Controller;
  readonly log: Log;
  /** Makes a report unless a worker made one with the same name lately. */
  readonly report: (name: string, print: () => void) => void;
}

/** The alerts of one controller. */
export function createFailureAlerts({
  client,
  controller,
  log,
  report,
}: FailureAlertsOptions): FailureAlerts {
  const to = { client, controller, log };
  const episode = () => Math.floor(Date.now() / EPISODE_MS);

  /** Names the competing writers, because the next attempts back off longer. */
  const reportRepeatedConflicts = ({ key, uid, conflicts }: AttemptRecord) => {
    const managers = [
      ...new Set(
        conflicts.flatMap(({ competingWriters }) => competingWriters.map(({ manager }) => manager)),
      ),
    ];
    report(`storm/${key}/${episode()}`, () => {
      log.warn({ key, conflicts: REPORTED_CONFLICTS, managers }, "repeated write conflicts");
      const against = managers.length === 0 ? "unknown writers" : managers.join(", ");
      const message = `${REPORTED_CONFLICTS} consecutive attempts ended in a conflict with ${against}`;
      emitEvent({ key, uid, reason: "RepeatedConflicts", message }, to);
    });
  };

  /** Once per minute, controller and code, because one missing permission fails all keys of a controller. */
  const reportRepeatedFailures = (
    { key, uid, error, outcome }: AttemptRecord,
    failures: number,
  ) => {
    const code = error?.reason ?? error?.code ?? outcome;
    report(`failing/${controller.name}/${code}/${episode()}`, () => {
      log.warn({ key, failures, err: error }, "repeated reconcile failures");
      const message = `${failures} consecutive attempts failed, the last one with ${code}`;
      emitEvent({ key, uid, reason: "RepeatedFailures", message }, to);
    });
  };

  return {
    ended(attempt, record) {
      if (record.outcome === "conflict" && attempt.conflicts + 1 === REPORTED_CONFLICTS) {
        reportRepeatedConflicts(record);
      }
      const failures = attempt.failures + 1;
      if (FAILED.has(record.outcome) && failures % REPORTED_FAILURES === 0) {
        reportRepeatedFailures(record, failures);
      }
    },
    lost(key, consecutive) {
      if (consecutive < REPORTED_LOST) return;
      const message = `${consecutive} consecutive attempts were lost; the handler may terminate its process`;
      emitEvent({ key, uid: undefined, reason: "AttemptsLost", message }, to);
    },
  };
}
