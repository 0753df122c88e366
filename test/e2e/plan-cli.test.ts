import { child, defineController } from "@konverge/engine";
import { ConfigMap } from "@konverge/kube/kinds";
import { planRecordSchema } from "@konverge/records";
import { expect, test } from "vitest";
import { useWorkers } from "../integration/worker/worker-harness.ts";
import { runCommand } from "./cli-runner.ts";

const workers = useWorkers("plan-cli.test.konverge.dev");
const namespace = "default";
const environment = () => ({
  KONVERGE_REDIS_URL: workers.queues.apiUrl,
  KONVERGE_PREFIX: workers.queues.prefix,
});

test("object plan prints the changes of the next attempt, and exits with 1 if it is incomplete", async () => {
  const { Widgets, client } = workers;
  await workers.start([
    defineController({
      name: "widgets",
      for: Widgets,
      owns: [ConfigMap],
      reconcile: async ({ object, kube, plan, limit }) => {
        if (!plan) return;
        const { name } = object.metadata;
        await kube.reconcileChildren(object, [
          child(ConfigMap, { name: `${name}-child`, data: { color: "blue" } }),
        ]);
        if (name === "red") await limit("stripe", () => undefined);
      },
    }),
  ]);
  for (const name of ["blue", "red"]) {
    await client.create(Widgets, { metadata: { namespace, name }, spec: {} });
  }
  const plan = ["object", "plan", "widgets"];
  const text = await runCommand([...plan, "blue", "-n", namespace], environment());
  expect(text).toMatchObject({ code: 0 });
  expect(text.stdout).toContain("+ configmaps default/blue-child created");
  expect(text.stdout).toContain('data.color: "blue"');

  const json = await runCommand([...plan, "blue", "-n", namespace, "-o", "json"], environment());
  expect(planRecordSchema.parse(JSON.parse(json.stdout))).toMatchObject({ complete: true });

  const incomplete = await runCommand([...plan, "red", "-n", namespace], environment());
  expect(incomplete.code).toBe(1);
  expect(incomplete.stdout).toContain("not_plannable");
  const { items } = await client.list(ConfigMap, { namespace });
  expect(items.map(({ metadata }) => metadata.name)).not.toContain("blue-child");
});
