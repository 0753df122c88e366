import { createControllerRegistry } from "@konverge/queue";
import { TerminalError } from "@konverge/core";
import {
  defineWorkflow,
  openWorkflows,
  type AnyWorkflow,
  type Workflow,
  type Workflows,
} from "@konverge/workflow";
import type { Locator, Page } from "playwright-core";
import { onTestFinished } from "vitest";
import { type QueueHarness } from "../../integration/queue/queue-harness.ts";
import { startOwnApi, type OwnApi } from "./own-api.ts";
import { until } from "../../support/until.ts";

const approval = {
  parse(value: unknown): { readonly by: string } {
    const { by } = (value ?? {}) as { readonly by?: unknown };
    if (typeof by !== "string") throw new Error("by must be a string");
    return { by };
  },
};
interface Spec {
  readonly name: string;
  readonly fails?: boolean;
}
const smoke = defineWorkflow("smoke", { version: 1 }, (w, name: string) =>
  w.step("probe", () => `${name} answers`),
);
/** Waits for an approval after three steps; then fails if `fails` is set. */
export const rollout: Workflow<Spec> = defineWorkflow(
  "rollout",
  { version: 3 },
  async (w, { name, fails }: Spec) => {
    const pool = await w.step("create", () => ({ pool: name }), { undo: () => undefined });
    await w.step("label", ({ attempt }) => {
      if (attempt < 3) throw new Error("busy");
    });
    await w.child("smoke", smoke, name);
    const { by } = (await w.signal("approve", { schema: approval, timeout: "24h" })) ?? {};
    await w.step("publish", () => {
      if (fails === true) throw new TerminalError("the quota of backends is 0");
    });
    return { pool, by };
  },
);

/** Starts an API server and a worker of workflows. */
export async function stageRuns(
  harness: QueueHarness,
  {
    env = {},
    more = [],
  }: {
    readonly env?: Readonly<Record<string, string>>;
    readonly more?: readonly AnyWorkflow[];
  } = {},
): Promise<OwnApi & { readonly runs: Workflows }> {
  const api = await startOwnApi(harness, env);
  const redis = harness.target;
  const { prefix } = harness;
  const registry = createControllerRegistry({ redis, prefix, cluster: "default" });
  const workflows = [rollout, smoke, ...more];
  await registry.announce([], workflows);
  await registry.close();
  const runs = openWorkflows({ redis, prefix });
  runs.work({ workflows });
  onTestFinished(() => runs.close());
  return { ...api, runs };
}

/** Starts a run and waits until it waits for its approval. */
export async function started(
  runs: Workflows,
  id: string,
  spec: Spec = { name: id },
): Promise<void> {
  await runs.start(rollout, spec, { id });
  await inStatus(runs, id, "waiting");
}

export async function inStatus(runs: Workflows, id: string, status: string): Promise<void> {
  await until(`${id} is ${status}`, async () => {
    const run = await runs.get({ workflow: "rollout", id });
    return run?.status === status && run.waits?.[0]?.kind !== "child";
  });
}

/** Returns the sentence with the run's status. */
export const sentenceOf = (page: Page): Locator => page.locator(".run-sentence");
