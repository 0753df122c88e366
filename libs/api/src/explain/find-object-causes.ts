import { defined } from "@konverge/core";
import type { SourceView } from "@konverge/contracts";
import { findSourceProblems } from "../views/find-source-problems.ts";
import { count, cut } from "../views/problem-text.ts";
import { findConditionCauses } from "./find-condition-causes.ts";
import type { Cause, ObjectFacts } from "./object-facts.ts";

/** Statuses of runs that have ended. */
const ENDED = new Set(["done", "failed", "cancelled"]);
const MOST_SHOWN = 5;
/** A worker reports what it leads with its heartbeats, and may be elected after the first one. */
const ELECTED_MS = 15_000;

/** Finds the causes outside of the object's own attempts: its watches, sources, runs and children. */
export function findObjectCauses(facts: ObjectFacts): Cause[] {
  return [
    ...ofMissing(facts),
    ...ofLeader(facts),
    ...ofSources(facts.sources),
    ...ofRuns(facts),
    ...ofChildren(facts),
    ...findConditionCauses(facts),
  ];
}

function ofMissing({ live, state }: ObjectFacts): Cause[] {
  if (live.kind !== "missing") return [];
  return [
    {
      code: "object_missing",
      level: state?.lastOutcome === "gone" ? "info" : "warning",
      message: "The cluster has no such object, or it is outside of the controller's scope",
      action: "Check the name, the namespace, and the selectors of the controller",
      docs: "docs/scope-and-permissions.md",
      evidence: [{ kind: "request", name: "read of the object", at: live.readAt }],
    },
  ];
}

/** Without a leader, no change of the object is seen. Workers of older versions do not report what they lead. */
function ofLeader({ key: { controller }, workers, nowMs }: ObjectFacts): Cause[] {
  const able = workers.filter(
    ({ controllers, role }) => controllers.includes(controller) && role !== "work",
  );
  const serving = workers.filter(({ controllers }) => controllers.includes(controller));
  if (serving.length === 0 || able.some(({ load }) => load?.leads === undefined)) return [];
  if (able.some(({ load }) => load?.leads?.includes(controller))) return [];
  if (able.some(({ startedAt }) => nowMs - Date.parse(startedAt) < ELECTED_MS)) return [];
  return [
    {
      code: "no_leader",
      level: "warning",
      message: `No worker leads the watches of ${controller}, so changes of objects start no attempts`,
      action:
        able.length === 0
          ? "Start a worker with the role `watch` or `all`"
          : "A worker takes over within seconds; if none does, run `konverge doctor`",
      page: "/workers",
      docs: "docs/embedding.md",
      evidence: serving.slice(0, MOST_SHOWN).map(({ workerId, role, load }) => ({
        kind: "worker",
        name: workerId,
        detail: `role ${role}, ${load?.leads?.length ? `leads ${load.leads.join(", ")}` : `does not lead ${controller}`}`,
      })),
    },
  ];
}

function ofSources(sources: readonly SourceView[]): Cause[] {
  return findSourceProblems(sources).map(
    ({ message, cause, since, action, subject, count: n }) => ({
      code: "source_failing",
      level: "warning",
      message: cut(`${message}: ${cause ?? "unknown"}`),
      ...defined({ since, action }),
      page: "/workers",
      docs: "docs/sources.md",
      evidence: [{ kind: "source", name: subject ?? "", detail: count(n ?? 0, "failure") }],
    }),
  );
}

function ofRuns({ runs }: ObjectFacts): Cause[] {
  return runs.flatMap((run): Cause[] => {
    const { id, status, blockedReason, blockedAt, error, endedAt, waits = [], createdAt } = run;
    const page = `/runs/${id.split("/").map(encodeURIComponent).join("/")}`;
    const evidenceAt = (at: string, detail: string) =>
      [{ kind: "run", name: id, at, detail: cut(detail) }] as const;
    if (status === "blocked") {
      const reason = blockedReason ?? "unknown";
      return [
        {
          code: "run_blocked",
          level: "error",
          message: cut(`The run ${id} that the object started is blocked: ${reason}`),
          since: blockedAt ?? createdAt,
          action: `Remove the cause, then run \`konverge run retry ${id} --reason WHY\``,
          page,
          docs: "docs/workflow-operations.md",
          evidence: [...evidenceAt(blockedAt ?? createdAt, reason)],
        },
      ];
    }
    if (status === "failed") {
      const reason = error === undefined ? "unknown" : `${error.code}: ${error.message}`;
      return [
        {
          code: "run_failed",
          level: "warning",
          message: cut(`The run ${id} that the object started failed: ${reason}`),
          since: endedAt ?? createdAt,
          action: `Fix the cause, then run \`konverge run retry ${id} --reason WHY\``,
          page,
          docs: "docs/workflow-operations.md",
          evidence: [...evidenceAt(endedAt ?? createdAt, reason)],
        },
      ];
    }
    if (ENDED.has(status)) return [];
    const [wait] = waits;
    const what =
      wait === undefined
        ? ""
        : ` in step ${wait.step} (${wait.kind})${wait.message === undefined ? "" : `: ${wait.message}`}`;
    return [
      {
        code: "run_open",
        level: "info",
        message: cut(`The run ${id} that the object started has not ended: ${status}${what}`),
        since: wait?.since ?? createdAt,
        action: `Follow it with \`konverge run watch ${id}\``,
        page,
        docs: "docs/workflow-operations.md",
        evidence: [...evidenceAt(wait?.since ?? createdAt, `${status}${what}`)],
      },
    ];
  });
}

function ofChildren({ live }: ObjectFacts): Cause[] {
  if (live.kind !== "found") return [];
  const open = live.children.filter(({ status }) => status !== undefined && status !== "current");
  if (open.length === 0) return [];
  const failed = open.filter(({ status }) => status === "failed");
  const shown = (failed.length > 0 ? failed : open).slice(0, MOST_SHOWN);
  const names = shown.map(({ kind, name, status }) => `${kind} ${name} (${status})`).join(", ");
  return [
    {
      code: "child_not_ready",
      level: failed.length > 0 ? "error" : "info",
      message: cut(
        `${count(open.length, "child").replace(
          "childs",
          "children",
        )} of ${live.children.length} not ready: ${names}`,
      ),
      action: "See the events and conditions of the child with `kubectl describe`",
      docs: "docs/children.md",
      evidence: shown.map(({ kind, name, key, status = "" }) => ({
        kind: "child",
        name: key ?? `${kind}/${name}`,
        at: live.readAt,
        detail: status,
      })),
    },
  ];
}
