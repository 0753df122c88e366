import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigMap } from "konverge/kinds";
import { startTestCluster } from "konverge/testing";
import { greeter } from "./greeter.ts";
import { Greeting } from "./greeting.ts";

const world = { metadata: { name: "world" }, spec: { name: "World" } };

test("creates one ConfigMap per greeting", async () => {
  await using k = await startTestCluster({ controllers: [greeter] });
  const greeting = await k.apply(Greeting, world);
  const { status } = await k.reconciled(greeting);
  assert.equal(status?.text, "Hello, World!");
  assert.equal(k.calls({ verb: "create", type: ConfigMap }).length, 1);
});

test("recreates a deleted ConfigMap", async () => {
  await using k = await startTestCluster({ controllers: [greeter] });
  await k.reconciled(await k.apply(Greeting, world));
  const configMap = await k.kube.get(ConfigMap, "world");
  await k.kube.delete(configMap);
  await k.until("the ConfigMap is recreated", async () => {
    const found = await k.kube.find(ConfigMap, "world");
    return found !== undefined && found.metadata.uid !== configMap.metadata.uid;
  });
});

test("retries after a transient API server error", async () => {
  await using k = await startTestCluster({ controllers: [greeter] });
  k.inject({
    verbs: ["create"],
    resources: ["configmaps"],
    count: 1,
    effect: { kind: "answer", code: 503 },
  });
  const { status } = await k.reconciled(await k.apply(Greeting, world));
  assert.equal(status?.text, "Hello, World!");
});
