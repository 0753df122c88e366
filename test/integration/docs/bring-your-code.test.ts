import { ApiException, KubeConfig } from "@kubernetes/client-node";
import { defineController, defineResource, type Controller } from "@konverge/engine";
import { isAlreadyExists, isConflict, isNotFound } from "@konverge/kube";
import { ConfigMap, Deployment } from "@konverge/kube/kinds";
import { defineConfig, type Config } from "@konverge/worker";
import { defineWorkflow, type Workflow } from "@konverge/workflow";
import { expect, test } from "vitest";
import { z } from "zod";
import { startTestCluster, testWorkflow } from "../../../apps/cli/src/testing/index.ts";
import { blockOf, functionOf } from "./load-block.ts";

const Scaler = defineResource({
  group: "docs.konverge.dev",
  version: "v1",
  kind: "Scaler",
  spec: z.object({ replicas: z.int() }),
});

test("a handler and a step use APIs of client-node, by its KubeConfig", async () => {
  const makeController = await functionOf<Controller>(
    blockOf("docs/bring-your-code.md ts 1"),
    ["defineController", "Scaler", "Deployment"],
    "scaler",
  );
  const scaler = await makeController({ defineController, Scaler, Deployment });
  await using k = await startTestCluster({ controllers: [scaler] });
  const labels = { app: "web" };
  await k.apply(Deployment, {
    metadata: { name: "web" },
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: "web", image: "nginx" }] } },
    },
  });
  await k.reconciled(await k.apply(Scaler, { metadata: { name: "web" }, spec: { replicas: 3 } }));
  expect((await k.kube.get(Deployment, "web")).spec?.replicas).toBe(3);

  const makeWorkflow = await functionOf<Workflow<{ namespace: string }>>(
    blockOf("docs/bring-your-code.md ts 2"),
    ["defineWorkflow", "ConfigMap", "isAlreadyExists"],
    "reserve",
  );
  const reserve = await makeWorkflow({ defineWorkflow, ConfigMap, isAlreadyExists });
  for (const _ of ["first", "again"]) {
    const run = testWorkflow(reserve, { namespace: "default" }, { kube: k.client });
    expect(await run.settle()).toMatchObject({ status: "done" });
  }
  expect((await k.kube.get(ConfigMap, "reserved")).data).toEqual({ by: "reserve" });

  const makeConfig = await functionOf<Config>(
    blockOf("docs/bring-your-code.md ts 4"),
    ["defineConfig", "scaler", "text"],
    "exported",
  );
  const { clusters } = await makeConfig({ defineConfig, scaler, text: k.kubeconfig });
  expect(clusters["default"]?.kubeconfig).toBeInstanceOf(KubeConfig);
});

test("predicates accept an ApiException", async () => {
  const load = await functionOf<(error: unknown) => string>(
    blockOf("docs/bring-your-code.md ts 3"),
    ["isNotFound", "isConflict"],
    "explain",
  );
  const explain = await load({ isNotFound, isConflict });
  const codes = [409, 404, 500].map((code) => explain(new ApiException(code, "", "", {})));
  expect(codes).toEqual(["client-node's own check", "missing", "other"]);
});
