import type { GuardView, OverviewController, OverviewProblem } from "@konverge/contracts";
import { defined } from "@konverge/core";
import { count } from "./problem-text.ts";

/** Returns the outage or the isolation of an API server. An outage is one problem from its first failure to its end. */
export function findGuardProblems(
  guards: readonly GuardView[],
  controllers: readonly Pick<OverviewController, "waiting" | "delayed">[],
): OverviewProblem[] {
  const queued = controllers.reduce((sum, { waiting, delayed }) => sum + waiting + delayed, 0);
  const kept = `${count(queued, "request")} queued, none lost.`;
  return guards.flatMap(({ cluster, breaker }): OverviewProblem[] => {
    const { isolated, outage } = breaker;
    if (isolated !== undefined) {
      return [
        {
          code: "api_server_isolated",
          level: "error",
          subject: cluster,
          message: `All calls to the API server of ${cluster} are stopped by ${isolated.by}`,
          since: isolated.at,
          cause: isolated.reason,
          consequence: kept,
          action: `When the reason is gone, run \`konverge guard reset ${cluster} --reason ...\``,
        },
      ];
    }
    if (outage === undefined) return [];
    const { failingWorkers, liveWorkers, since, lastError, recoveringSince } = outage;
    const extent =
      liveWorkers === 0 ? "" : ` for ${failingWorkers} of ${count(liveWorkers, "worker")}`;
    const message =
      recoveringSince === undefined
        ? `API server of ${cluster} is failing${extent}`
        : `API server of ${cluster} is recovering from an outage`;
    return [
      {
        code: "api_server_outage",
        level: "error",
        subject: cluster,
        message,
        since,
        ...defined({ cause: lastError }),
        consequence:
          breaker.state === "closed"
            ? `Calls are still sent; failed attempts are retried. ${kept}`
            : `Calls are stopped, and a probe is sent every few seconds. ${kept}`,
        action:
          recoveringSince === undefined
            ? "Check the API server and its network. Work resumes by itself"
            : "No action is needed if no call fails for 30 s",
      },
    ];
  });
}
