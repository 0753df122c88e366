import { expect, test } from "vitest";
import { startDemo } from "./start-demo.ts";

interface PlanDocument {
  readonly objects: number;
  readonly plan: {
    readonly planned: number;
    readonly groups: readonly { readonly action: string; readonly count: number }[];
  };
  readonly checks: readonly { readonly ok: boolean; readonly what: string }[];
}

test("the plan of a new version finds its deletions, and equals the audit log after an approval", async () => {
  const demo = startDemo<PlanDocument>("--story", "plan", "--objects", "24");
  const { objects, plan, checks } = await demo.document();
  expect(checks.filter(({ ok }) => !ok)).toEqual([]);
  expect(checks).toHaveLength(12);
  expect(await demo.exited).toBe(0);
  expect(objects).toBe(24);
  expect(plan).toMatchObject({
    planned: 24,
    groups: [
      { action: "changed", count: 20 },
      { action: "deleted", count: 4 },
    ],
  });
});
