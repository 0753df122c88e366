import { defined } from "@konverge/core";
import type { PlanRecord } from "@konverge/records";
import { describe, expect, test } from "vitest";
import { seededRandom } from "../../../demo/src/load/seeded-random.ts";
import { comparePlans } from "./compare-plans.ts";
import { FleetPlan } from "./fleet-plan.ts";
import { fleetText } from "./fleet-text.ts";

type Change = PlanRecord["changes"][number];
type GivenChange = Pick<Change, "action" | "name"> & Partial<Change>;

const seed = Number(process.env["KONVERGE_TEST_SEED"] ?? 1);

function planOf(changes: readonly GivenChange[], more: Partial<PlanRecord> = {}): PlanRecord {
  return {
    uid: "u",
    versionBefore: "1",
    outcome: "success",
    complete: true,
    gaps: [],
    events: [],
    externals: [],
    runs: [],
    changes: changes.map((change) => ({
      kind: "ConfigMap",
      resource: "configmaps.",
      namespace: "demo",
      ...change,
    })),
    ...more,
  } as unknown as PlanRecord;
}

const changed = (name: string, data: Record<string, string>, digest?: string): GivenChange => ({
  action: "changed",
  name,
  patch: { data },
  ...defined({ digest }),
});

describe("the comparison of two plans", () => {
  test("lists added, dropped and altered changes, and counts new deletions", () => {
    const running = planOf([
      changed("same", { a: "1" }),
      changed("other", { a: "1", b: "2" }),
      changed("stopped", { a: "1" }),
      changed("swapped", { a: "1" }),
      { action: "deleted", name: "gone" },
      { action: "unchanged", name: "idle" },
    ]);
    const next = planOf([
      changed("same", { a: "1" }),
      changed("other", { a: "2", b: "2" }),
      { action: "unchanged", name: "stopped" },
      { action: "replaced", name: "swapped" },
      { action: "replaced", name: "gone" },
      { action: "deleted", name: "idle" },
      { action: "created", name: "made" },
    ]);
    const entry = comparePlans("key", running, next);
    expect(entry).toMatchObject({ complete: true, total: 6, deletes: 2 });
    const fleet = new FleetPlan({ isComparison: true });
    fleet.add(entry);
    fleet.add(comparePlans("equal", running, running));
    fleet.addRemoved("old");
    expect(
      fleetText(fleet)
        .split("\n")
        .filter((line) => !line.startsWith("    ")),
    ).toEqual([
      "2 objects planned with new and running code, 1 without differences",
      "1 ConfigMap changed in another way: data.a",
      "1 ConfigMap no longer changed: data.a",
      "1 ConfigMap created",
      "1 ConfigMap deleted",
      "1 ConfigMap replaced, not changed",
      "1 ConfigMap replaced, not deleted",
      "controller old is not in the new code: 1 objects would no longer be reconciled",
    ]);
  });

  test("finds a difference of values that the plans do not show", () => {
    const cut = { data: { text: "x… (1000 characters)" } };
    const one = planOf([{ action: "changed", name: "big", patch: cut, digest: "1" }]);
    const other = planOf([{ action: "changed", name: "big", patch: cut, digest: "2" }]);
    expect(comparePlans("key", one, other).changes).toMatchObject([
      { difference: "altered", fields: [] },
    ]);
    // Such as the current time, which the digest omits.
    const later = planOf([changed("big", { at: "12:01" }, "1")]);
    expect(comparePlans("key", one, later).changes).toEqual([]);
  });

  test("notes other effects and outcomes", () => {
    const running = planOf([], { runs: [{ workflow: "ship" }], externals: ["bill"] });
    const next = planOf([], {
      runs: [{ workflow: "ship" }, { workflow: "ship" }],
      outcome: "requeueAfter",
      afterMs: 29_600,
    });
    const entry = comparePlans("key", running, next);
    expect(entry.notes).toEqual([
      "starts workflow ship",
      "no longer calls ctx.external bill",
      "ends with requeueAfter after 30 s, not success",
    ]);
    expect(entry).toMatchObject({ runs: 1, externals: 0, total: 0 });
  });

  test("is incomplete if the new plan is, or if the plans cannot be compared", () => {
    const plan = planOf([]);
    const failed = planOf([], { complete: false, error: { code: "timed_out", message: "slow" } });
    expect(comparePlans("key", plan, failed)).toMatchObject({
      complete: false,
      error: "new code: slow",
    });
    expect(comparePlans("key", failed, plan)).toMatchObject({ complete: true });
    const cut = planOf([], { moreChanges: 1 });
    expect(comparePlans("key", plan, cut)).toMatchObject({ complete: false });
    const moved = planOf([], { versionBefore: "2" });
    expect(comparePlans("key", plan, moved)).toMatchObject({ complete: false });
  });

  test(`a plan has no difference from itself, and differences name each object once (KONVERGE_TEST_SEED=${seed})`, () => {
    const random = seededRandom(seed);
    const actions = ["created", "changed", "deleted", "replaced", "unchanged"] as const;
    const randomAction = () => actions[Math.floor(random() * actions.length)] ?? "changed";
    const randomPlan = () =>
      planOf(
        ["a", "b", "c"].flatMap((name) =>
          random() < 0.3
            ? []
            : [
                {
                  action: randomAction(),
                  name,
                  patch: { data: { n: random() < 0.5 ? "1" : "2" } },
                },
              ],
        ),
      );
    for (let round = 0; round < 200; round += 1) {
      const [one, other] = [randomPlan(), randomPlan()];
      expect(comparePlans("key", one, structuredClone(one))).toMatchObject({ total: 0 });
      const forth = comparePlans("key", one, other).changes;
      const back = comparePlans("key", other, one).changes;
      expect(new Set(forth.map(({ object }) => object)).size).toBe(forth.length);
      const objects = (changes: typeof forth, difference: string) =>
        changes.filter((each) => each.difference === difference).map(({ object }) => object);
      expect(objects(forth, "added").toSorted()).toEqual(objects(back, "dropped").toSorted());
      expect(objects(forth, "altered").toSorted()).toEqual(objects(back, "altered").toSorted());
    }
  });
});
