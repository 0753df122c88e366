import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files that take 40 s or more, longest first. */
const LONG = [
  "test/e2e/packages.test.ts",
  "test/e2e/dashboard/incident.test.ts",
  "test/e2e/demo.test.ts",
  "test/e2e/dashboard/dashboard-demo.test.ts",
  "test/e2e/dashboard/workflows.test.ts",
  "test/e2e/manifests.test.ts",
  "test/chaos/outage.test.ts",
  "test/chaos/fleet.test.ts",
  "test/chaos/verb-teeth.test.ts",
  "test/e2e/demo-rollout.test.ts",
  "test/e2e/chart.test.ts",
  "test/e2e/dev.test.ts",
  "test/integration/workflow/workflow-death-points.test.ts",
  "test/integration/workflow/workflow-crash.test.ts",
  "test/integration/engine/engine-stray.test.ts",
  "test/integration/guard/guard-fleet.test.ts",
  "test/conformance/published-crds.test.ts",
  "test/chaos/teeth.test.ts",
];

/**
 * Starts the longest files first, so that none of them runs alone at the end. Vitest's own order needs the durations
 * of an earlier run, which a fresh clone does not have.
 */
export class LongestFirst extends BaseSequencer {
  override sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return Promise.resolve(files.toSorted((a, b) => rankOf(a) - rankOf(b)));
  }
}

function rankOf({ moduleId, project }: TestSpecification): number {
  const at = LONG.findIndex((file) => moduleId.endsWith(`/${file}`));
  if (at >= 0) return at;
  return ["e2e", "chaos"].includes(project.name) ? LONG.length : LONG.length + 1;
}
