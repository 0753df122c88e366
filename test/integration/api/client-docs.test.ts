import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";
import { startApi } from "@konverge/api";
import { createClient, type Client } from "@konverge/client";
import { readSettings } from "@konverge/contracts";
import { createControllerRegistry } from "@konverge/queue";
import { expect, onTestFinished, test } from "vitest";
import { useQueues, workOn } from "../queue/queue-harness.ts";

const TOKEN = "a-token-of-the-test-0123456789abcdef";
const harness = useQueues();

/** An API with a worker, and a client for the test itself. */
async function serve(): Promise<{
  readonly client: Client;
  readonly run: (page: string) => Promise<{ readonly stdout: string; readonly stderr: string }>;
}> {
  const { apiUrl: url, prefix, target } = harness;
  const registry = createControllerRegistry({ redis: target, cluster: "default", prefix });
  const type = { cluster: "default", group: "demo.konverge.dev", version: "v1", kind: "NodePool" };
  await registry.announce([
    { ...type, name: "node-pool", resource: "nodepools", scope: "Namespaced" },
  ]);
  await registry.close();
  const settings = readSettings({
    env: {
      KONVERGE_REDIS_URL: url,
      KONVERGE_PREFIX: prefix,
      KONVERGE_API_PORT: "0",
      KONVERGE_TOKEN: TOKEN,
      KONVERGE_LOG_LEVEL: "silent",
    },
  });
  const api = await startApi({ settings, version: "test" });
  const worker = workOn(harness.open(), () => ({ kind: "done" }));
  // Inside of the workspace, where packages are found by their names.
  const cache = "node_modules/.cache";
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, "client-docs-"));
  onTestFinished(async () => {
    await rm(folder, { recursive: true });
    await worker.stop();
    await api.stop();
  });
  return {
    client: createClient({ server: api.url, token: TOKEN }),
    async run(path) {
      const page = await readFile(path, "utf8");
      const blocks = [...page.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, text = ""]) => text);
      const program = join(folder, "program.mjs");
      // Node strips no types below node_modules.
      await writeFile(program, stripTypeScriptTypes(blocks.join("\n")));
      return await promisify(execFile)(
        process.execPath,
        ["--conditions=@konverge/source", program],
        {
          env: { ...process.env, KONVERGE_SERVER: api.url, KONVERGE_TOKEN: TOKEN },
          timeout: 150_000,
        },
      );
    },
  };
}

test("the blocks of docs/client.md are one program that runs", async () => {
  const { client, run } = await serve();
  const blue = { controller: "node-pool", namespace: "demo", name: "blue" };
  // Events are repeated until the program listens.
  const failures: unknown[] = [];
  const talk = setInterval(() => {
    const action = { by: "ada", reason: "a test" };
    client.objects.pause({ ...blue, name: "blue-2" }, action).catch((error: unknown) => {
      failures.push(error);
    });
  }, 200);
  const { stdout, stderr } = await run("docs/client.md").finally(() => clearInterval(talk));
  expect(failures).toEqual([]);
  expect(stderr).toBe("");
  expect(stdout).toMatch(/^requested node-pool\/.*\/blue@1\ndone\n/);
  expect(stdout).toContain("unknown_controller 404 ");
  expect(stdout).toMatch(/\nadmin: pause blue-2\n$/);
});

test("the block of docs/enqueue.md asks and waits", async () => {
  const { run } = await serve();
  expect(await run("docs/enqueue.md")).toEqual({ stdout: "done \n", stderr: "" });
});
