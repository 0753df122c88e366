import type { OverviewProblem } from "@konverge/contracts";
import { defined } from "@konverge/core";
import { MIN_FAILED, RECENT_MS, type ControllerTrouble } from "./find-controller-problems.ts";

type Code = OverviewProblem["code"];
type Troubles = ReadonlyMap<
  string,
  Pick<ControllerTrouble, "errors"> & Partial<Pick<ControllerTrouble, "deadLetters">>
>;

/** The problems that a problem explains, by code. */
const SYMPTOMS: Partial<Record<Code, readonly Code[]>> = {
  no_workers: ["unserved", "backlog"],
  redis_memory: ["unserved", "backlog"],
  api_server_outage: ["backlog", "failing"],
  api_server_isolated: ["backlog", "failing"],
  dead_letters: ["failing"],
};

/** The errors of calls that were not sent, or that the API server could not answer. */
const OUTAGE_ERRORS: ReadonlySet<string> = new Set([
  "deferred",
  "kube_timeout",
  "kube_unreachable",
  // An error response without a Status comes from a proxy.
  ...["", "InternalError", "ServerTimeout", "ServiceUnavailable", "Timeout"].map(
    (reason) => `kube_api.${reason}`,
  ),
]);
const MINUTE_MS = 60_000;

/** Moves the symptoms of a problem into it. */
export function foldSymptoms(
  problems: readonly OverviewProblem[],
  troubles: Troubles,
): OverviewProblem[] {
  let left = [...problems];
  for (const root of problems) {
    const explained = SYMPTOMS[root.code];
    if (explained === undefined || !left.includes(root)) continue;
    const symptoms = left.filter(
      (problem) => explained.includes(problem.code) && isSymptom(problem, root, troubles),
    );
    if (symptoms.length === 0) continue;
    const folded = symptoms.map(({ code: kind, message, controller }) => ({
      code: kind,
      message,
      ...defined({ controller }),
    }));
    left = left
      .filter((problem) => !symptoms.includes(problem))
      .map((problem) => (problem === root ? { ...problem, symptoms: folded } : problem));
  }
  return left;
}

function isSymptom(problem: OverviewProblem, root: OverviewProblem, troubles: Troubles): boolean {
  if (problem.code !== "failing") return true;
  return root.code === "dead_letters"
    ? problem.controller === root.controller && isOnlyDeadLetters(problem, troubles)
    : isExplained(problem, root, troubles);
}

/** Whether the errors of a controller are those of its dead letters. The index of attempts has only the start of a message. */
function isOnlyDeadLetters({ controller = "" }: OverviewProblem, troubles: Troubles): boolean {
  const { errors = [], deadLetters = [] } = troubles.get(controller) ?? {};
  const known = deadLetters.flatMap(({ error }) => error ?? []);
  return (
    errors.length > 0 && errors.every(({ text }) => known.some((each) => each.startsWith(text)))
  );
}

/** Whether a controller fails only because the API server does. */
function isExplained(failing: OverviewProblem, root: OverviewProblem, troubles: Troubles): boolean {
  const { errors = [] } = troubles.get(failing.controller ?? "") ?? {};
  const recent = errors.filter(({ atMs }) => atMs > Date.now() - RECENT_MS);
  const own = recent.filter(({ code }) => !OUTAGE_ERRORS.has(code));
  if (own.length >= MIN_FAILED) return false;
  return recent.length > own.length || beganAfter(failing, root);
}

/** Failures are counted per minute. */
function beganAfter(failing: OverviewProblem, root: OverviewProblem): boolean {
  const [began, rootBegan] = [failing, root].map(({ since }) =>
    Math.floor(Date.parse(since ?? "") / MINUTE_MS),
  );
  return began !== undefined && rootBegan !== undefined && began >= rootBegan;
}
