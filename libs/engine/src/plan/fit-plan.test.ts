import { planRecordSchema, type PlanRecord } from "@konverge/records";
import { describe, expect, test } from "vitest";
import { seededRandom } from "../../../../apps/demo/src/load/seeded-random.ts";
import { fitPlan, MOST_CHARACTERS } from "./fit-plan.ts";

const seed = Number(process.env["KONVERGE_TEST_SEED"] ?? 1);

/** A record whose parts have random lengths, up to the largest that a plan can have. */
function randomPlan(random: () => number): PlanRecord {
  const upTo = (most: number) => Math.floor(random() ** 3 * (most + 1));
  const text = (most: number) => '"'.repeat(upTo(most));
  const list = <T>(most: number, make: () => T) => Array.from({ length: upTo(most) }, make);
  const about = () => ({ kind: text(63), namespace: text(63), name: text(253) });
  return {
    kind: "plan",
    id: "1",
    key: text(600),
    controller: text(63),
    worker: text(200),
    startedAt: "",
    finishedAt: "",
    durationMs: 1,
    outcome: "retry",
    error: { code: "kube_rejected", message: text(1_000) },
    complete: false,
    hash: "",
    summary: { created: 0, changed: 200, deleted: 0, replaced: 0, unchanged: 0 },
    changes: list(200, () => ({
      resource: text(200),
      ...about(),
      action: "changed" as const,
      writes: list(20, () => ({
        verb: "apply" as const,
        fieldManager: text(128),
        changed: true,
      })),
      patch: { data: text(random() < 0.1 ? 300_000 : 3_000) },
      fieldsTakenOver: list(100, () => ({ manager: text(128), path: text(500) })),
    })),
    events: list(100, () => ({
      type: "Normal",
      reason: text(128),
      message: text(1_024),
      ...about(),
    })),
    externals: list(100, () => text(200)),
    runs: list(100, () => ({ workflow: text(63), id: text(300) })),
    gaps: list(50, () => ({ about: text(300), reason: text(300) })),
    reads: 0,
    calls: { count: 0, durationMs: 0, rateLimitMs: 0 },
    log: { lines: list(50, () => text(2_000)) } as unknown as NonNullable<PlanRecord["log"]>,
  };
}

describe("fitPlan", () => {
  test(`M1: bounds each record, and counts the omitted parts (KONVERGE_TEST_SEED=${seed})`, () => {
    const random = seededRandom(seed);
    for (let round = 0; round < 40; round += 1) {
      const record = randomPlan(random);
      const fitted = fitPlan(record);
      expect(JSON.stringify(fitted).length).toBeLessThanOrEqual(MOST_CHARACTERS);
      expect(planRecordSchema.omit({ log: true }).safeParse(fitted).success).toBe(true);
      expect(fitted.changes.length + (fitted.moreChanges ?? 0)).toBe(record.changes.length);
      const notes = ({ events, externals, runs, gaps, moreNotes = 0 }: PlanRecord) =>
        events.length + externals.length + runs.length + gaps.length + moreNotes;
      expect(notes(fitted)).toBe(notes(record));
      if (JSON.stringify(record).length <= MOST_CHARACTERS) expect(fitted).toEqual(record);
    }
  });
});
