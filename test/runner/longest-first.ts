import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files that take 20 s or more on a quiet machine, longest first. */
const LONG = [
  "test/e2e/packages.test.ts",
  "test/e2e/dashboard/incident.test.ts",
  "test/e2e/demo.test.ts",
  "test/e2e/manifests.test.ts",
  "test/chaos/outage.test.ts",
  "test/e2e/dashboard/dashboard-demo.test.ts",
  "test/e2e/chart.test.ts",
  "test/e2e/dashboard/dashboard.test.ts",
  "test/e2e/dashboard/workflows.test.ts",
  "test/integration/engine/alert-fleets.test.ts",
  "test/integration/workflow/workflow-death-points.test.ts",
  "test/e2e/dashboard/workflow-run.test.ts",
  "test/e2e/dev.test.ts",
  "test/e2e/mutation-docs.test.ts",
  "test/chaos/fleet.test.ts",
  "test/integration/api/api-fuzz.test.ts",
  "test/e2e/compose.test.ts",
  "test/e2e/new-outcome.test.ts",
  "test/chaos/hand-over.test.ts",
  "test/e2e/guard.test.ts",
  "test/integration/engine/engine-stray.test.ts",
  "test/e2e/dashboard/workflows-demo.test.ts",
  "test/e2e/demo-killed.test.ts",
  "test/e2e/cluster-docs.test.ts",
  "test/conformance/published-crds.test.ts",
  "test/chaos/verb-teeth.test.ts",
  "test/chaos/mutation-teeth.test.ts",
  "test/integration/worker/redis-restore.test.ts",
  "test/e2e/demo-rollout.test.ts",
  "test/integration/queue/history.test.ts",
  "test/integration/workflow/workflow-crash.test.ts",
  "test/chaos/teeth.test.ts",
  "test/integration/api/api-authorization.test.ts",
  "test/integration/guard/guard-fleet.test.ts",
  "test/integration/workflow/run-store-contract.test.ts",
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
