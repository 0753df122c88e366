import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { blocksOf, nameOf } from "./integration/docs/load-block.ts";

/** Tests that run all blocks of a page and language, or one of them, and assert what the page says about them. */
const RUN_BY: Readonly<Record<string, string>> = {
  "README.md ts": "test/integration/engine/examples.test.ts",
  "docs/bring-your-code.md sh 1": "test/e2e/crds.test.ts",
  "docs/bring-your-code.md sh 2": "test/e2e/crds.test.ts",
  "docs/bring-your-code.md sh 3": "test/e2e/packages.test.ts",
  "docs/client.md ts": "test/integration/api/client-docs.test.ts",
  "docs/cluster.md ts": "test/e2e/cluster-docs.test.ts",
  "docs/cluster.md sh": "test/e2e/cluster-docs.test.ts",
  "docs/cluster.md promql": "test/e2e/cluster-docs.test.ts",
  "docs/embedding.md ts": "test/e2e/embed.test.ts",
  "docs/enqueue.md ts": "test/integration/api/client-docs.test.ts",
  "docs/enqueue.md sh": "test/e2e/enqueue-docs.test.ts",
  "docs/enqueue.md crontab": "test/e2e/enqueue-docs.test.ts",
  "docs/explain.md json": "test/e2e/explain-docs.test.ts",
  "docs/explain.md sh": "test/e2e/explain-docs.test.ts",
  "docs/first-controller.md ts": "test/e2e/packages.test.ts",
  "docs/first-controller.md sh": "test/e2e/packages.test.ts",
  "docs/identity.md yaml": "test/integration/api/api-kubernetes.test.ts",
  "docs/mutations.md ts": "test/e2e/mutation-docs.test.ts",
  "docs/mutations.md sh": "test/e2e/mutation-docs.test.ts",
  "docs/mutations.md json": "test/e2e/mutation-docs.test.ts",
  "docs/notifications.md ts": "test/e2e/notification-docs.test.ts",
  "docs/notifications.md sh": "test/e2e/notification-docs.test.ts",
  "docs/plan.md ts": "test/integration/worker/plans.test.ts",
  "docs/replay.md ts": "test/e2e/replay-docs.test.ts",
  "docs/replay.md sh": "test/e2e/replay-docs.test.ts",
  "docs/several-clusters.md ts": "test/integration/worker/several-clusters.test.ts",
  "docs/simulate.md ts": "test/sim/simulate-docs.test.ts",
  "docs/from-kubebuilder.md sh": "test/e2e/packages.test.ts",
  "docs/from-kubebuilder.md ts 1": "test/e2e/packages.test.ts",
  "docs/from-kubebuilder.md ts 2": "test/e2e/packages.test.ts",
  "docs/from-kubebuilder.md ts 3": "test/e2e/packages.test.ts",
  "docs/production.md yaml": "test/integration/worker/production.test.ts",
  "docs/releasing.md sh 2": "test/e2e/packages.test.ts",
  "docs/releasing.md sh 3": "test/e2e/packages.test.ts",
  "docs/restore.md sh 1": "test/e2e/restore-cli.test.ts",
  "docs/restore.md sh 3": "test/e2e/restore-cli.test.ts",
  "docs/testing.md ts 1": "test/e2e/packages.test.ts",
  "docs/workflow-operations.md sh": "test/e2e/workflow-docs.test.ts",
  "docs/workflow-state.md sh": "test/e2e/workflow-docs.test.ts",
  "docs/workflow-testing.md sh": "test/e2e/workflow-docs.test.ts",
  "docs/workflows.md ts": "test/e2e/packages.test.ts",
  "docs/workflows.md sh": "test/e2e/packages.test.ts",
};
/** Blocks that no test runs, with the reason. */
const NOT_RUN: Readonly<Record<string, string>> = {
  text: "output or a diagram",
  console: "output of a command",
  "README.md sh": "the demo, the suite and the commands have tests of their own",
  "docs/audit.md sh": "commands on the log of a running installation; audit-cli.test.ts runs them",
  "docs/cli.md sh": "sets up completion in the user's shell",
  "docs/cluster.md yaml": "values of a chart and an autoscaler that no test installs",
  "docs/configuration.md sh": "addresses of Redis servers that do not exist",
  "docs/enqueue.md yaml": "a receiver of Alertmanager; its webhook is an example with a test",
  "docs/examples.md sh": "changes objects of a demo that is running",
  "docs/from-bullmq.md typescript": "the job that the page replaces, with a service of its own",
  "docs/from-kopf.md python": "code for kopf, which is not a dependency",
  "docs/from-temporal.md typescript": "code for Temporal's SDK, which is not a dependency",
  "docs/history.md sh":
    "queries of an API that is running; api-history tests have the same filters",
  "docs/identity.md ts": "a setting; chart tests print the manifests of a configuration with it",
  "docs/identity.md sh": "calls an API server and an HTTP API that do not exist",
  "docs/plan.md sh":
    "plans an object of a demo that is running; tests of plans make the same calls",
  "docs/production.md sh": "chart tests run the command with the examples",
  "docs/releasing.md sh 1": "packages tests run it with a folder of their own",
  "docs/releasing.md sh 4": "changes the version of every package; a test compares them",
  "docs/restore.md sh 2": "ends work of an installation that does not exist",
  "docs/restore.md sh 4": "deletes the keys of an installation that does not exist",
  "docs/restore.md sh 5": "needs kubectl and jq, and Deployments with marks of an earlier Redis",
  "docs/scope-and-permissions.md sh": "manifests tests run it with the project of konverge init",
  "docs/simulate.md sh": "simulate-cli tests run the command with another file",
  "docs/security.md sh": "generates a token with openssl",
  "docs/several-clusters.md sh":
    "tests start the worker in their process, and create the Secrets through the API",
  "docs/sign-in.md sh": "starts an API with a provider that does not exist",
  "docs/slo.md ts": "a setting; worker tests start a controller with one",
  "docs/sources.md sh 1": "generates a secret with openssl, and starts an API",
  "docs/sources.md yaml": "settings of Alertmanager and Argo CD; tests send recorded payloads",
  "docs/tracing.md sh": "sends traces to a collector that does not exist",
  "docs/workflow-patterns.md sh":
    "fleet-rollout tests run it in memory, demo-rollout tests with processes",
};

const blocks = ["README.md", ...globSync("docs/*.md")].flatMap(blocksOf);
const here = globSync("test/integration/docs/*.test.ts")
  .map((file) => readFileSync(file, "utf8"))
  .join("\n");
const keysOf = ({ page, language, number }: (typeof blocks)[number]) => [
  nameOf({ page, language, number }),
  `${page} ${language}`,
  language,
];

test.each(blocks.map((block) => [nameOf(block), block] as const))(
  "a test runs %s, or a reason says why none does",
  (name, block) => {
    const isHere = here.includes(`"${name}"`);
    const isElsewhere = keysOf(block).some((key) => key in RUN_BY);
    const isReasoned = keysOf(block).some((key) => key in NOT_RUN);
    expect([isHere, isElsewhere, isReasoned].filter(Boolean)).toHaveLength(1);
  },
);

test("each entry has a block, and each test reads its page", () => {
  const known = new Set(blocks.flatMap(keysOf));
  for (const key of [...Object.keys(RUN_BY), ...Object.keys(NOT_RUN)]) {
    expect(known, key).toContain(key);
  }
  for (const [key, file] of Object.entries(RUN_BY)) {
    const [page = ""] = key.split(" ");
    expect(readFileSync(file, "utf8"), key).toContain(page.replace("docs/", ""));
  }
  for (const [, name = ""] of here.matchAll(/"((?:README|docs\/[\w-]+)\.md \w+ \d+)"/g)) {
    expect(known, name).toContain(name);
  }
});
