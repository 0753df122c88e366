import { expect, test } from "vitest";
import { startDemo } from "./start-demo.ts";

interface MutationsDocument {
  readonly mutations: number;
  readonly writes: number;
  readonly repeated: number;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly checks: readonly { readonly ok: boolean; readonly what: string }[];
}

test("no change of a pipeline, a billing system and an operator is lost when a worker is killed", async () => {
  const demo = startDemo<MutationsDocument>("--story", "mutations");
  await demo.line(/was killed with -9/);
  const { mutations, writes, repeated, outcomes, checks } = await demo.document();
  expect(checks.filter(({ ok }) => !ok)).toEqual([]);
  expect(checks).toHaveLength(10);
  expect(await demo.exited).toBe(0);
  expect(outcomes).toEqual({ applied: mutations });
  expect(repeated).toBeGreaterThan(0);
  // Mutations of one object share their writes.
  expect(writes).toBeLessThan(mutations);
});
