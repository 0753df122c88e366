import { EXPLANATION_CAUSES, type Explanation } from "@konverge/contracts";
import { defined, formatKey } from "@konverge/core";
import { findAttemptCauses } from "./find-attempt-causes.ts";
import { findCallCauses } from "./find-call-causes.ts";
import { findObjectCauses } from "./find-object-causes.ts";
import { findPhaseCauses } from "./find-phase-causes.ts";
import { findStartCauses } from "./find-start-causes.ts";
import type { Cause, ObjectFacts, Verdict } from "./object-facts.ts";

const MOST_CAUSES = 20;

/** Explains why an object is not reconciled or not ready. The same facts result in the same explanation. */
export function explainObject(facts: ObjectFacts): Explanation {
  const { key, state, live, nowMs } = facts;
  const start = findStartCauses(facts);
  const before = [...start, ...findObjectCauses(facts), ...findCallCauses(facts, start)];
  const all = [...before, ...findAttemptCauses(facts, before), ...findPhaseCauses(facts, before)];
  const causes = all.toSorted((one, other) => rankOf(one) - rankOf(other)).slice(0, MOST_CAUSES);
  const verdict = verdictOf(causes);
  return {
    key: formatKey(key),
    at: new Date(nowMs).toISOString(),
    verdict,
    ...defined({ phase: state?.phase }),
    summary: summaryOf(facts, causes, verdict),
    causes,
    ...(live.kind === "unavailable" ? { unread: live.message } : {}),
  };
}

/** Errors and warnings precede the expected course of work. Among each of them, the root precedes its effects. */
function rankOf({ code, level }: Cause): number {
  const at = EXPLANATION_CAUSES.indexOf(code);
  return level === "info" ? at + EXPLANATION_CAUSES.length : at;
}

function verdictOf(causes: readonly Cause[]): Verdict {
  if (causes.some(({ level }) => level !== "info")) return "blocked";
  return causes.length === 0 ? "ok" : "waiting";
}

function summaryOf(
  { attempts: [latest] }: ObjectFacts,
  [first]: readonly Cause[],
  verdict: Verdict,
): string {
  if (first !== undefined && verdict !== "ok") return `${first.message}.`;
  if (latest === undefined) return "Nothing is wrong.";
  return `Nothing is wrong. The last attempt ended with ${latest.outcome} at ${latest.finishedAt}.`;
}
