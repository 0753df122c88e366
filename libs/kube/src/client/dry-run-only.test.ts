import { createLocalGate } from "@konverge/core";
import { expect, onTestFinished, test } from "vitest";
import { loadKubeCredentials } from "../credentials/kube-credentials.ts";
import { ConfigMap } from "../names/kinds.ts";
import { createKubeClient } from "./create-kube-client.ts";

test("a client for dry runs only sends no write, in no scope", async () => {
  const kubeconfigText = JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "one",
    contexts: [{ name: "one", context: { cluster: "one", user: "one" } }],
    clusters: [{ name: "one", cluster: { server: "http://127.0.0.1:1" } }],
    users: [{ name: "one", user: {} }],
  });
  const client = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigText }),
    gate: createLocalGate({ ratePerSecond: 100, burst: 100 }),
    userAgent: "test/1",
    isDryRunOnly: true,
  });
  onTestFinished(() => client.close());
  const target = { namespace: "demo", name: "one" };
  const rejected = { code: "not_plannable" };
  for (const each of [client, client.scoped({ priority: "critical" })]) {
    await expect(each.create(ConfigMap, { metadata: target })).rejects.toMatchObject(rejected);
    await expect(each.delete(ConfigMap, target)).rejects.toMatchObject(rejected);
  }
  // Is sent, to a server that does not exist.
  await expect(client.get(ConfigMap, target)).rejects.toMatchObject({ code: "kube_unreachable" });
});
