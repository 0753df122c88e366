import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { ConfigMap } from "@konverge/kube/kinds";
import { startEmbeddedServer } from "../integration/kube/embedded-server.ts";
import { until } from "../support/until.ts";

const redisUrl = process.env["REDIS_URL"] ?? "";
const SNIPPET = /```ts\n(.*?)```/s.exec(readFileSync("docs/embedding.md", "utf8"))?.[1] ?? "";

test("the program of docs/embedding.md reconciles, drains and exits by itself", async () => {
  await using cleanup = new AsyncDisposableStack();
  const { client, kubeconfig } = cleanup.use(await startEmbeddedServer());
  const prefix = `embed-${process.pid}`;
  cleanup.defer(async () => {
    const redis = new Redis(redisUrl);
    const keys = await redis.keys(`${prefix}:*`);
    if (keys.length > 0) await redis.del(...keys);
    await redis.quit();
  });
  const program = [
    ["redis://127.0.0.1:6379", redisUrl],
    ["/etc/my-app/kubeconfig", kubeconfig],
    // The prefix separates tests on one Redis.
    ["controllers: [labels] }", `controllers: [labels], settings: { prefix: "${prefix}" } }`],
  ].reduce((text, [from = "", to = ""]) => {
    expect(text).toContain(from);
    return text.replace(from, to);
  }, SNIPPET);
  expect(SNIPPET.trim().split("\n").length).toBeLessThanOrEqual(20);

  const child = spawn(
    process.execPath,
    ["--conditions=@konverge/source", "--input-type=module-typescript", "--eval", program],
    {
      stdio: ["ignore", "pipe", "pipe"],
      // These would be rejected if they were read.
      env: { ...process.env, KONVERGE_NO_SUCH_SETTING: "1", KUBECONFIG: "/nowhere" },
    },
  );
  cleanup.defer(() => void child.kill("SIGKILL"));
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => (said += chunk.toString()));
  }
  await client.create(ConfigMap, { metadata: { namespace: "default", name: "mine" } });
  await until("the object is reconciled", async () => {
    if (child.exitCode !== null) throw new Error(said);
    const { metadata } = await client.get(ConfigMap, { namespace: "default", name: "mine" });
    return metadata.labels?.["seen"] === "yes";
  });
  child.kill("SIGTERM");
  expect(await ended, said).toBe(0);
  expect(said).toContain('"msg":"worker stopped"');
});
