import { defined, formatKey, namespaceSegment } from "@konverge/core";
import { heldQueues } from "@konverge/queue";
import { findGuardProblems } from "../views/find-cluster-problems.ts";
import { findRestoreProblems } from "../views/find-redis-problems.ts";
import { count, cut } from "../views/problem-text.ts";
import { isPending, objectWords, type Cause, type ObjectFacts } from "./object-facts.ts";

/** Finds the causes that keep any attempt of the object from starting or from reaching the API server. */
export function findStartCauses(facts: ObjectFacts): Cause[] {
  return [
    ...ofRestore(facts),
    ...ofWorkers(facts),
    ...ofGuard(facts),
    ...ofPause(facts),
    ...ofDeadLetter(facts),
  ];
}

function ofRestore({ restore }: ObjectFacts): Cause[] {
  if (!heldQueues(restore.held).includes("keys")) return [];
  return findRestoreProblems(restore).map(({ message, since, action }) => ({
    code: "restored",
    level: "error",
    message: `${message}, so no attempt starts`,
    ...defined({ since, action }),
    page: "/workers",
    docs: "docs/restore.md",
    evidence: [],
  }));
}

function ofWorkers(facts: ObjectFacts): Cause[] {
  const { key, workers } = facts;
  const name = key.controller;
  const serving = workers.filter(({ controllers }) => controllers.includes(name));
  const page = "/workers";
  const effect = isPending(facts) ? "its request waits" : "changes of the object start no attempt";
  if (serving.some(({ role }) => role !== "watch")) return [];
  if (workers.length === 0) {
    return [
      {
        code: "no_workers",
        level: "error",
        message: `No worker of cluster ${key.cluster} is live, so ${effect}`,
        action: "Start a worker with `konverge worker --config <file>`",
        page,
        evidence: [],
      },
    ];
  }
  return [
    {
      code: "unserved",
      level: "error",
      message: `No live worker runs the handler of ${name}, so ${effect}`,
      action: "Start a worker with the configuration of the controller",
      page,
      evidence: workers.slice(0, 5).map(({ workerId, startedAt, controllers }) => ({
        kind: "worker",
        name: workerId,
        at: startedAt,
        detail:
          controllers.length === 0 ? `does not run ${name}` : `runs ${controllers.join(", ")}`,
      })),
    },
  ];
}

function ofGuard({ guard, queue }: ObjectFacts): Cause[] {
  if (guard === undefined) return [];
  const { breaker, cluster } = guard;
  return findGuardProblems([guard], [queue]).map(
    ({ code, message, cause, since, action, consequence }) => ({
      code: code === "api_server_isolated" ? "api_server_isolated" : "api_server_outage",
      level: "error",
      message: cut(`${message}${cause === undefined ? "" : `: ${cause}`}`),
      ...defined({ since, action }),
      page: "/guards",
      docs: "docs/outages.md",
      evidence: [
        {
          kind: "guard",
          name: cluster,
          ...defined({ at: since }),
          detail: `breaker ${breaker.state}. ${consequence ?? ""}`.trim(),
        },
      ],
    }),
  );
}

function ofPause({ key, state }: ObjectFacts): Cause[] {
  const { paused } = state ?? {};
  if (paused === undefined || state?.phase !== "paused") return [];
  const { by, reason, since, scope } = paused;
  const what = {
    controller: `Controller ${key.controller}`,
    namespace: `Namespace ${namespaceSegment(key.namespace)} of ${key.controller}`,
    key: "The object",
  }[scope.kind];
  const flags = {
    controller: key.controller,
    namespace: `${key.controller} -n ${namespaceSegment(key.namespace)}`,
    key: objectWords(key),
  }[scope.kind];
  return [
    {
      code: "paused",
      level: "warning",
      message: `${what} is paused by ${by}: ${reason}`,
      since,
      action: `Resume with \`konverge queue resume ${flags}\``,
      page: "/objects?phase=paused",
      evidence: [{ kind: "pause", name: scope.kind, at: since, detail: `by ${by}: ${reason}` }],
    },
  ];
}

function ofDeadLetter({ key, state }: ObjectFacts): Cause[] {
  if (state?.phase !== "deadLettered") return [];
  const { deadLetter, failures } = state;
  const error = deadLetter?.error;
  const why = error === undefined ? "" : `; the last error is ${error.code}: ${error.message}`;
  return [
    {
      code: "dead_lettered",
      level: "error",
      message: cut(`The object is dead-lettered after ${count(failures, "failure")}${why}`),
      ...(deadLetter === undefined ? {} : { since: deadLetter.since }),
      action: `Fix the cause, then run \`konverge dead-letter release ${objectWords(key)}\``,
      page: "/dead-letters",
      docs: "docs/outcomes.md",
      evidence: [
        {
          kind: "request",
          name: formatKey(key),
          ...(deadLetter === undefined ? {} : { at: deadLetter.since }),
          ...(error === undefined ? {} : { detail: cut(error.message) }),
        },
      ],
    },
  ];
}
