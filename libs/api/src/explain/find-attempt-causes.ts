import { EPISODE_PAUSE_MS } from "@konverge/queue";
import { hintDocs, HINTS, LOOP_CAUSE, type AttemptRecord } from "@konverge/records";
import { suggestedFix } from "../views/find-contention-problems.ts";
import { count, cut } from "../views/problem-text.ts";
import {
  attemptEvidence,
  attemptName,
  objectWords,
  type Cause,
  type Evidence,
  type ObjectFacts,
} from "./object-facts.ts";

/** Two takeovers of a field are a change of the owner and back. */
const FEWEST_TAKEOVERS = 2;
const MOST_ATTEMPTS = 3;
/** Deferrals that another cause explains. */
const EXPLAINED = new Set(["api_server_outage", "api_server_isolated"]);

/** Finds the causes that the last attempts report: competing writers, and the error of the last attempt. */
export function findAttemptCauses(facts: ObjectFacts, found: readonly Cause[]): Cause[] {
  const causes = [...ofLoop(facts), ...ofContention(facts)];
  const [latest] = facts.attempts;
  if (latest === undefined) return [...causes, ...ofUnrecorded(facts)];
  // A key that has run well since is not stopped by it.
  const known = new Set([...found, ...causes].map(({ code }) => code));
  return [...causes, ...ofOutcome(facts, latest, known)];
}

function ofLoop({ key, contention: { loop } }: ObjectFacts): Cause[] {
  if (loop === undefined) return [];
  const { kind, managers, paths, protection, untilMs, sinceMs, worker } = loop;
  const { controller } = key;
  const what = {
    ownershipFlip: `${controller} and ${managers.join(", ") || "another manager"} overwrite each other's fields`,
    selfTriggered: `${controller} is triggered by its own writes`,
    requeue: `${controller} requests a requeue without end and without a change`,
  }[kind];
  const until = new Date(untilMs).toISOString();
  const effect = protection === "throttle" ? `; attempts are throttled until ${until}` : "";
  const writers = {
    kind: kind === "ownershipFlip" ? kind : "selfTriggered",
    controller,
    managers,
    fields: paths,
  } as const;
  const since = new Date(sinceMs).toISOString();
  return [
    {
      code: "loop",
      level: "warning",
      message: cut(`${what}${effect}`),
      since,
      action:
        kind === "requeue"
          ? "Requeue only while work is pending, and watch the objects that the handler waits for"
          : suggestedFix(writers),
      page: "/contention",
      docs: "docs/hints.md",
      evidence: [
        { kind: "worker", name: worker, at: since, detail: `reported ${kind}` },
        ...managers.map((manager) => ({ kind: "manager", name: manager, at: since }) as const),
      ],
    },
  ];
}

/** Returns the manager with the most conflicts and takeovers of the current episode. */
function ofContention({ key, contention, nowMs }: ObjectFacts): Cause[] {
  if (contention.loop?.kind === "ownershipFlip") return [];
  const current = contention.competingWriters
    .filter(
      ({ kind, inEpisode, lastAt }) =>
        nowMs - Date.parse(lastAt) < EPISODE_PAUSE_MS &&
        (kind === "conflict" || inEpisode >= FEWEST_TAKEOVERS),
    )
    .toSorted((one, other) => other.inEpisode - one.inEpisode);
  const [first] = current;
  if (first === undefined) return [];
  const { kind, manager, path, inEpisode, firstAt } = first;
  const field = path === "" ? "fields of the object" : path;
  const times = count(inEpisode, "time");
  const isTakeover = kind === "takeover";
  return [
    {
      code: "contention",
      level: isTakeover ? "warning" : "info",
      message: isTakeover
        ? `${manager} and ${key.controller} overwrite each other's ${field}: ${times}`
        : `Writes of ${manager} to ${field} conflicted with ${key.controller}: ${times}`,
      since: firstAt,
      action: suggestedFix({
        kind: isTakeover ? "ownershipFlip" : "conflict",
        controller: key.controller,
        managers: [manager],
        fields: path === "" ? [] : [path],
      }),
      page: "/contention",
      docs: "docs/history.md",
      evidence: current.slice(0, 5).map((each) => ({
        kind: "manager",
        name: each.manager,
        at: each.lastAt,
        detail: `${each.kind} of ${each.path || "the object"}, ${count(each.inEpisode, "time")}`,
      })),
    },
  ];
}

/** The outcome of a key whose attempts are no longer kept. */
function ofUnrecorded({ state, key }: ObjectFacts): Cause[] {
  if (state === undefined || state.failures === 0 || state.phase === "deadLettered") return [];
  const last = state.lastOutcome === undefined ? "" : ` with ${state.lastOutcome}`;
  return [
    {
      code: "attempt_failed",
      level: "warning",
      message: `The last ${count(state.failures, "attempt")} failed${last}; their records are no longer kept`,
      action: `Run \`konverge object plan ${objectWords(key)}\` to see the error of the next attempt`,
      docs: "docs/errors.md",
      evidence: [],
    },
  ];
}

function ofOutcome(facts: ObjectFacts, latest: AttemptRecord, known: ReadonlySet<string>): Cause[] {
  const { outcome, error, cause, conflicts, finishedAt: since, worker } = latest;
  const name = attemptName(latest);
  const Name = `${name[0]?.toUpperCase()}${name.slice(1)}`;
  const errorText = error === undefined ? outcome : `${error.code}: ${error.message}`;
  const page = `/attempts?name=${encodeURIComponent(facts.key.name)}`;
  const common = { since, page, evidence: evidenceOf(facts, outcome) };
  switch (outcome) {
    case "done":
    case "requeueAfter":
    case "awaitChange":
    case "gone":
      return [];
    case "awaitApproval":
      return [
        {
          code: "approval_awaited",
          level: "warning",
          message: `${Name} planned changes that users must approve first`,
          ...common,
          action: `Run \`konverge approval show ${objectWords(facts.key)}\``,
          docs: "docs/plan.md",
        },
      ];
    case "retry":
    case "rejected":
    case "terminal":
      return [
        {
          code: "attempt_failed",
          level: outcome === "retry" && facts.state?.failures === 1 ? "warning" : "error",
          message: cut(`${Name} failed with ${errorText}`),
          ...common,
          action: actionOf(facts, latest),
          docs: latest.hints?.[0] === undefined ? "docs/errors.md" : hintDocs(latest.hints[0].code),
        },
      ];
    case "conflict": {
      const writers = [...conflicts, ...latest.writes.flatMap((write) => write.conflicts)]
        .flatMap(({ competingWriters }) => competingWriters)
        .map(({ manager }) => manager);
      const who =
        writers.length === 0 ? "" : ` with a write of ${[...new Set(writers)].join(", ")}`;
      return [
        {
          code: "conflict",
          level: "warning",
          message: cut(`${Name} conflicted${who}; it is retried with a new read`),
          ...common,
          docs: "docs/outcomes.md",
        },
      ];
    }
    case "lost":
      return [
        {
          code: "worker_lost",
          level: "warning",
          message: `${Name} lost its worker ${worker}; it runs again on another worker`,
          ...common,
          action: "Check the exit code and the memory limit of the worker",
          docs: "docs/guarantees.md",
        },
      ];
    case "deferred":
      if (cause === LOOP_CAUSE && known.has("loop")) return [];
      return [
        {
          code: "attempt_deferred",
          level: [...known].some((code) => EXPLAINED.has(code)) ? "info" : "warning",
          message: cut(`${Name} was deferred${cause === undefined ? "" : `: ${cause}`}`),
          ...common,
          docs: "docs/outages.md",
        },
      ];
    case "cancelled":
      return [
        {
          code: "attempt_cancelled",
          level: "info",
          message: cut(
            `${Name} was cancelled${cause === undefined ? "" : ` (${cause})`}; ${facts.state?.pending === undefined ? "the object runs with its next request" : "it runs again"}`,
          ),
          ...common,
          docs: "docs/outcomes.md",
        },
      ];
  }
}

/** The last attempts with this outcome, and the hints of the last one. */
function evidenceOf({ attempts }: ObjectFacts, outcome: string): Evidence[] {
  const end = attempts.findIndex((each) => each.outcome !== outcome);
  const row = attempts.slice(0, end === -1 ? undefined : end).slice(0, MOST_ATTEMPTS);
  const hints = attempts[0]?.hints ?? [];
  return [
    ...row.map(attemptEvidence),
    ...hints.map(({ code, message }) => ({ kind: "hint", name: code, detail: message }) as const),
  ];
}

/** The fix of the first hint, else where to see the error. */
function actionOf({ key, state }: ObjectFacts, { hints = [], epoch }: AttemptRecord): string {
  const [hint] = hints;
  if (hint !== undefined) return HINTS[hint.code];
  const flag = epoch === undefined ? "" : ` --attempt ${epoch}`;
  const retried = state?.phase === "deadLettered" ? "" : "; the attempt is retried";
  return `See the stack with \`konverge object history ${objectWords(key)}${flag}\`, then fix the handler or its inputs${retried}`;
}
