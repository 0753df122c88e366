import { createClient } from "@konverge/client";
import { explanationSchema } from "@konverge/contracts";
import { defineController } from "@konverge/engine";
import { ConfigMap } from "@konverge/kube/kinds";
import { defineConfig } from "@konverge/worker";
import { expect, onTestFinished, test } from "vitest";
import { blocksOf } from "../integration/docs/load-block.ts";
import { startEmbeddedServer } from "../integration/kube/embedded-server.ts";
import { useQueues } from "../integration/queue/queue-harness.ts";
import { until } from "../support/until.ts";
import { openDocsStage, TOKEN } from "./docs-stage.ts";

const queues = useQueues();

test("docs/explain.md: the command line and curl return the cause of a failure", async () => {
  const server = await startEmbeddedServer();
  onTestFinished(() => server[Symbol.asyncDispose]());
  const controller = defineController({
    name: "node-pool",
    for: ConfigMap,
    reconcile: async ({ object }) => {
      if (object.metadata.name === "blue") throw new Error("quota exceeded");
    },
  });
  const { api, type } = await openDocsStage(
    queues,
    server,
    defineConfig({ controllers: [controller] }),
  );
  await server.client.create(ConfigMap, { metadata: { namespace: "default", name: "blue" } });
  const client = createClient({ server: api.url, token: TOKEN });
  const blue = { controller: "node-pool", namespace: "default", name: "blue" };
  await until("it has failed", async () => {
    return (await client.objects.explain(blue)).causes[0]?.code === "attempt_failed";
  });
  const text = blocksOf("docs/explain.md").find(({ language }) => language === "sh")?.text ?? "";
  const [first, ...rest] = text.replaceAll("demo", "default").split("\n");
  const output = await type(first ?? "", { KONVERGE_TOKEN: TOKEN });
  expect(output).toContain("quota exceeded");
  expect(output).toMatch(/verdict +blocked/);
  expect(output).toContain("konverge object history node-pool blue -n default --attempt");
  const [json = "", ...curl] = rest;
  for (const line of [json, curl.join("\n")]) {
    const found = explanationSchema.parse(JSON.parse(await type(line, { KONVERGE_TOKEN: TOKEN })));
    expect(found.verdict).toBe("blocked");
    expect(found.causes[0]?.code).toBe("attempt_failed");
  }
});
