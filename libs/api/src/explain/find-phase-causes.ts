import { defined } from "@konverge/core";
import { count } from "../views/problem-text.ts";
import { objectWords, type Cause, type ObjectFacts } from "./object-facts.ts";

/** Causes that keep an attempt from starting. Without one, a waiting request waits for its turn. */
const STOPS: ReadonlySet<Cause["code"]> = new Set([
  "restored",
  "no_workers",
  "unserved",
  "api_server_isolated",
  "api_server_outage",
  "paused",
]);

/** Finds the cause that the phase of the key states: at most one. */
export function findPhaseCauses(facts: ObjectFacts, found: readonly Cause[]): Cause[] {
  const { state, key } = facts;
  if (state === undefined) {
    return [
      {
        code: "never_requested",
        level: "info",
        message: "No request for the object was found",
        action: `Enqueue it with \`konverge reconcile enqueue ${objectWords(key)}\``,
        page: "/objects",
        docs: "docs/enqueue.md",
        evidence: [],
      },
    ];
  }
  switch (state.phase) {
    case "running":
      return [
        {
          code: "running",
          level: "info",
          message: "An attempt of the object is running",
          action: `Follow its log with \`konverge object logs ${objectWords(key)} --follow\``,
          evidence: requestEvidence(facts),
        },
      ];
    case "waiting":
      return found.some(({ code }) => STOPS.has(code)) ? [] : [ofQueue(facts)];
    case "backoff":
      return [
        {
          code: "retry_scheduled",
          level: "info",
          message: `The next attempt starts ${startText(facts)}`,
          action: `Start it now with \`konverge reconcile enqueue ${objectWords(key)}\``,
          docs: "docs/outcomes.md",
          evidence: requestEvidence(facts),
        },
      ];
    case "idle":
      return state.nextAt === undefined
        ? []
        : [
            {
              code: "requeue_scheduled",
              level: "info",
              message: `The handler requested its next attempt ${startText(facts)}`,
              docs: "docs/outcomes.md",
              evidence: requestEvidence(facts),
            },
          ];
    case "paused":
    case "deadLettered":
      return [];
  }
}

/** A waiting request: calls that wait for tokens slow down the attempts before it. */
function ofQueue(facts: ObjectFacts): Cause {
  const { key, workers, queue } = facts;
  const slots = workers.flatMap(({ load }) => load?.slots[key.controller] ?? []);
  const running = slots.reduce((sum, slot) => sum + slot.running, 0);
  const limit = slots.reduce((sum, slot) => sum + slot.limit, 0);
  const busy = limit > 0 && running >= limit;
  const inSlots =
    limit === 0 ? "" : `; ${count(running, "attempt")} running in ${count(limit, "slot")}`;
  return {
    code: "queued",
    level: "info",
    message: `Its request waits in the queue with ${count(queue.waiting, "waiting request")}${inSlots}`,
    ...(busy ? { action: "Start more workers, or raise the concurrency of the controller" } : {}),
    page: "/objects?phase=waiting",
    docs: "docs/scaling.md",
    evidence: requestEvidence(facts),
  };
}

function startText({ state, nowMs }: ObjectFacts): string {
  const at = state?.nextAt;
  if (at === undefined) return "as soon as a worker is free";
  return Date.parse(at) <= nowMs ? `now: it was due at ${at}` : `at ${at}`;
}

function requestEvidence({ state }: ObjectFacts): Cause["evidence"] {
  if (state === undefined) return [];
  const { pending, phase, nextAt } = state;
  return [
    {
      kind: "request",
      name: pending ?? state.key,
      ...defined({ at: nextAt }),
      detail: phase,
    },
  ];
}
