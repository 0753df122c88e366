import { defined } from "@konverge/core";
import { z } from "zod";
import { cut } from "../views/problem-text.ts";
import { attemptEvidence, isPending, type Cause, type ObjectFacts } from "./object-facts.ts";

/** The parts of an object that explain its state. Objects have any form, so each part is optional. */
const explained = z.object({
  metadata: z.object({
    generation: z.number().optional(),
    deletionTimestamp: z.string().optional(),
    finalizers: z.array(z.string()).optional(),
  }),
  status: z
    .object({
      conditions: z.array(
        z.object({
          type: z.string(),
          status: z.string(),
          reason: z.string().optional(),
          message: z.string().optional(),
          lastTransitionTime: z.string().optional(),
        }),
      ),
    })
    .optional()
    .catch(undefined),
});

/** Conditions that are usually false if something is wrong, and those that are usually true then. */
const GOOD = new Set(["Ready", "Available", "Healthy"]);
const BAD = new Set(["Stalled", "Failed", "Degraded"]);

/** Finds the causes that the object itself reports: its conditions, its deletion, and a generation that no attempt has seen. */
export function findConditionCauses(facts: ObjectFacts): Cause[] {
  const { live } = facts;
  if (live.kind !== "found") return [];
  const read = explained.safeParse(live.object).data;
  if (read === undefined) return [];
  const { metadata, status } = read;
  const { deletionTimestamp, finalizers = [] } = metadata;
  if (deletionTimestamp !== undefined) {
    const names = finalizers.length === 0 ? "none" : finalizers.join(", ");
    return [
      {
        code: "terminating",
        level: "info",
        message: cut(`The object is being deleted, and waits for its finalizers: ${names}`),
        since: deletionTimestamp,
        docs: "docs/outcomes.md",
        evidence: [
          { kind: "condition", name: "deletionTimestamp", at: deletionTimestamp, detail: names },
        ],
      },
    ];
  }
  return [
    ...(status?.conditions ?? []).flatMap((condition): Cause[] => {
      const { type, status: value, reason, message, lastTransitionTime: at } = condition;
      const isBad = BAD.has(type) && value === "True";
      if (!isBad && !(GOOD.has(type) && value !== "True")) return [];
      const why = [reason, message].filter((text) => text !== undefined && text !== "").join(": ");
      return [
        {
          code: "condition",
          level: isBad ? "error" : "info",
          message: cut(`Its condition ${type} is ${value}${why === "" ? "" : `: ${why}`}`),
          ...defined({ since: at }),
          docs: "docs/resources.md",
          evidence: [
            {
              kind: "condition",
              name: type,
              ...defined({ at }),
              detail: why === "" ? value : cut(why),
            },
          ],
        },
      ];
    }),
    ...ofGeneration(facts, metadata.generation),
  ];
}

/** Finds a change of the object without a request since. */
function ofGeneration(facts: ObjectFacts, generation: number | undefined): Cause[] {
  const latest = facts.attempts.find((attempt) => attempt.generation !== undefined);
  if (generation === undefined || latest?.generation === undefined) return [];
  if (latest.generation >= generation || isPending(facts)) return [];
  return [
    {
      code: "outdated",
      level: "warning",
      message: `The object has generation ${generation}, but the last attempt has seen ${latest.generation} and no request waits`,
      since: latest.finishedAt,
      action:
        "Enqueue the object with `konverge reconcile enqueue`, and check the leader with `konverge doctor`",
      page: "/workers",
      evidence: [attemptEvidence(latest)],
    },
  ];
}
