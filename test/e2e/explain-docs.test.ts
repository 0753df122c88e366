import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createClient } from "@konverge/client";
import { explanationSchema } from "@konverge/contracts";
import { defineController } from "@konverge/engine";
import { ConfigMap } from "@konverge/kube/kinds";
import { defineConfig } from "@konverge/worker";
import { Client } from "@modelcontextprotocol/client";
import {
  StdioClientTransport,
  type StdioServerParameters,
} from "@modelcontextprotocol/client/stdio";
import { expect, onTestFinished, test } from "vitest";
import { blocksOf } from "../integration/docs/load-block.ts";
import { startEmbeddedServer } from "../integration/kube/embedded-server.ts";
import { useQueues } from "../integration/queue/queue-harness.ts";
import { until } from "../support/until.ts";
import { openDocsStage, TOKEN, type DocsStage } from "./docs-stage.ts";

const queues = useQueues();

const textOf = (language: string) =>
  blocksOf("docs/explain.md").find((block) => block.language === language)?.text ?? "";

/** An API and a worker whose handler fails for the object `blue`. */
async function openStage(): Promise<DocsStage> {
  const server = await startEmbeddedServer();
  onTestFinished(() => server[Symbol.asyncDispose]());
  const controller = defineController({
    name: "node-pool",
    for: ConfigMap,
    reconcile: async ({ object }) => {
      if (object.metadata.name === "blue") throw new Error("quota exceeded");
    },
  });
  const stage = await openDocsStage(queues, server, defineConfig({ controllers: [controller] }));
  await server.client.create(ConfigMap, { metadata: { namespace: "default", name: "blue" } });
  const client = createClient({ server: stage.api.url, token: TOKEN });
  const blue = { controller: "node-pool", namespace: "default", name: "blue" };
  await until("it has failed", async () => {
    return (await client.objects.explain(blue)).causes[0]?.code === "attempt_failed";
  });
  return stage;
}

test("docs/explain.md: the command line and curl return the cause of a failure", async () => {
  const { type } = await openStage();
  const [first, ...rest] = textOf("sh").replaceAll("demo", "default").split("\n");
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

test("docs/explain.md: an MCP client finds five tools that only read, and calls them", async () => {
  const { api, folder, bin } = await openStage();
  const secret = join(folder, "token");
  await writeFile(secret, TOKEN);
  const { mcpServers } = JSON.parse(
    textOf("json")
      .replace("https://konverge.example.com", api.url)
      .replace("/run/secrets/konverge", secret),
  ) as { readonly mcpServers: Record<"konverge", StdioServerParameters> };
  const { command, ...rest } = mcpServers.konverge;
  const client = new Client({ name: "test", version: "1" });
  await client.connect(new StdioClientTransport({ ...rest, command: join(bin, command) }));
  onTestFinished(() => client.close());
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name).toSorted()).toEqual(
    ["attempts", "explain", "object", "problems", "workers"].toSorted(),
  );
  for (const { annotations } of tools) expect(annotations?.readOnlyHint).toBe(true);
  const blue = { controller: "node-pool", namespace: "default", name: "blue" };
  const call = async (name: string, given: Record<string, unknown> = {}) => {
    const { content, isError } = await client.callTool({ name, arguments: given });
    const [item] = content as readonly { readonly text?: string }[];
    return { isError, text: item?.text ?? "" };
  };
  const explained = await call("explain", blue);
  expect(explanationSchema.parse(JSON.parse(explained.text)).causes[0]?.code).toBe(
    "attempt_failed",
  );
  const object = await call("object", blue);
  expect(JSON.parse(object.text)).toMatchObject({ live: { kind: "found" } });
  const attempts = await call("attempts", { ...blue, limit: 1 });
  expect((JSON.parse(attempts.text) as { items: unknown[] }).items).toHaveLength(1);
  expect((await call("problems")).text).toContain('"summary"');
  expect((await call("workers")).text).toContain('"node-pool"');
  const unknown = await call("explain", { controller: "none", name: "x" });
  expect(unknown).toMatchObject({ isError: true });
  expect(unknown.text).toContain("unknown_controller");
});
