import type { AttemptRecord } from "@konverge/records";
import type { KubeClient } from "@konverge/kube";
import type { AttemptLease } from "@konverge/queue";
import type { Controller } from "../define/define-controller.ts";
import type { Log } from "../define/log.ts";
import { emitEvent } from "./emit-event.ts";

/** Lost races in a row after which a person is told. The queue changes its ladder then. */
const CONFLICTS_TOLD = 50;
/** Failures in a row after which, and again after as many more, a person is told: no key is given up without being asked to. */
const FAILURES_TOLD = 25;
const FAILED: ReadonlySet<string> = new Set(["retry", "rejected"]);
/** Lost attempts in a row after which the handler is more likely to be the cause than its node. */
const LOST_TOLD = 2;
const EPISODE_MS = 60_000;

/** Tells people of keys whose attempts end badly time and again: by a log line, and an Event on the object. */
export interface FailureAlerts {
  readonly ended: (attempt: AttemptLease, record: AttemptRecord) => void;
  /** Attempts of a key that never ended. */
  readonly lost: (key: string, consecutive: number) => void;
}

export interface FailureAlertsOptions {
  readonly client: KubeClient;
  readonly controller: Controller;
  readonly log: Log;
  /** Says a thing unless it, by its name, was said lately by any worker. */
  readonly report: (what: string, reports: () => void) => void;
}

/** Of one controller. */
export function createFailureAlerts({
  client,
  controller,
  log,
  report,
}: FailureAlertsOptions): FailureAlerts {
  const to = { client, controller, log };
  const episode = () => Math.floor(Date.now() / EPISODE_MS);

  /** The next attempts climb the failure ladder; whoever wins all the time should be known by then. */
  const reportRepeatedConflicts = ({ key, uid, conflicts }: AttemptRecord) => {
    const managers = [
      ...new Set(
        conflicts.flatMap(({ competingWriters }) => competingWriters.map(({ manager }) => manager)),
      ),
    ];
    report(`storm/${key}/${episode()}`, () => {
      log.warn({ key, conflicts: CONFLICTS_TOLD, managers }, "repeated write conflicts");
      const against = managers.length === 0 ? "writers that are not known" : managers.join(", ");
      const message = `${CONFLICTS_TOLD} attempts in a row lost their race against ${against}`;
      emitEvent({ key, uid, reason: "RepeatedConflicts", message }, to);
    });
  };

  /** Once a minute per controller and code: one missing permission makes all keys of a controller fail. */
  const reportRepeatedFailures = (
    { key, uid, error, outcome }: AttemptRecord,
    failures: number,
  ) => {
    const code = error?.reason ?? error?.code ?? outcome;
    report(`failing/${controller.name}/${code}/${episode()}`, () => {
      log.warn({ key, failures, err: error }, "repeated reconcile failures");
      const message = `${failures} attempts in a row failed, the last one with ${code}`;
      emitEvent({ key, uid, reason: "RepeatedFailures", message }, to);
    });
  };

  return {
    ended(attempt, record) {
      if (record.outcome === "conflict" && attempt.conflicts + 1 === CONFLICTS_TOLD) {
        reportRepeatedConflicts(record);
      }
      const failures = attempt.failures + 1;
      if (FAILED.has(record.outcome) && failures % FAILURES_TOLD === 0) {
        reportRepeatedFailures(record, failures);
      }
    },
    lost(key, consecutive) {
      if (consecutive < LOST_TOLD) return;
      const message = `${consecutive} attempts in a row never ended: the handler may end its process`;
      emitEvent({ key, uid: undefined, reason: "AttemptsLost", message }, to);
    },
  };
}
