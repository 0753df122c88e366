import { startApi } from "@konverge/api";
import { startRedis } from "@konverge/apiserver";
import { readSettings } from "@konverge/contracts";
import { defineController } from "@konverge/engine";
import { checkRedis } from "@konverge/redis";
import { defineConfig, startWorkerProcess } from "@konverge/worker";
import { defineWorkflow } from "@konverge/workflow";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { aclText, redisUsers } from "../../../apps/cli/src/manifests/redis-acl.ts";
import { deniedCommands } from "../../runner/create-test-users.ts";
import { runCommand } from "../../e2e/cli-runner.ts";
import { until } from "../../support/until.ts";
import { startEmbeddedServer } from "../kube/embedded-server.ts";
import { installWidgets } from "../kube/kube-servers.ts";

const namespace = "default";
const PASSWORD = "of-the-test";

/** A Redis where only the printed users and an administrator can log in. */
async function startWithUsers(cleanup: AsyncDisposableStack) {
  const redis = cleanup.use(await startRedis({}));
  const admin = new Redis(redis.url);
  cleanup.defer(() => admin.disconnect());
  const users = redisUsers({ name: "konverge", prefix: "konverge", clusters: ["default"] });
  for (const line of aclText(users).trimEnd().split("\n")) {
    const [, , ...rules] = line.split(" ");
    expect(await admin.acl("SETUSER", ...(rules as [string]))).toBe("OK");
  }
  const urls: Record<string, string> = {};
  for (const { role, name } of users) {
    // The printed users have no password, so no client can log in before this.
    const early = redis.url.replace("//", `//${name}:@`);
    await expect(checkRedis({ url: early })).rejects.toMatchObject({
      message: expect.stringMatching(/WRONGPASS/) as string,
    });
    await admin.acl("SETUSER", name, `>${PASSWORD}`);
    urls[role] = redis.url.replace("//", `//${name}:${PASSWORD}@`);
  }
  await admin.acl("SETUSER", "default", "resetkeys", "-@all", "+acl");
  await admin.acl("LOG", "RESET");
  const { worker = "", api = "", viewer = "" } = urls;
  return { admin, worker, api, viewer };
}

const settingsOf = (url: string, kubeconfig = "") =>
  readSettings({
    env: {
      KONVERGE_REDIS_URL: url,
      ...(kubeconfig === "" ? {} : { KONVERGE_KUBECONFIG: kubeconfig }),
      KONVERGE_METRICS_PORT: "0",
      KONVERGE_API_PORT: "0",
      KONVERGE_LOG_LEVEL: "silent",
    },
  });

test("worker, API and CLI need no more than the printed users permit", async () => {
  await using cleanup = new AsyncDisposableStack();
  const users = await startWithUsers(cleanup);
  const { client, kubeconfig } = cleanup.use(await startEmbeddedServer());
  const Widgets = await installWidgets(client, "acl.test.konverge.dev");
  const runs = new Set<string>();
  const widgets = defineController({
    name: "widgets",
    for: Widgets,
    reconcile: async ({ object, kube }) => {
      await kube.mutateStatus(object, (draft) => {
        draft.status["runs"] = 1;
      });
      runs.add(object.metadata.name);
    },
  });
  const greet = defineWorkflow(
    "greet",
    { version: 1 },
    async (w) => await w.step("hello", () => "hello"),
  );
  const config = defineConfig({ controllers: [widgets], workflows: [greet] });
  const settings = settingsOf(users.worker, kubeconfig);
  const worker = await startWorkerProcess({ config, settings, version: "1" });
  cleanup.defer(() => worker.stop());
  await client.create(Widgets, { metadata: { namespace, name: "one" }, spec: {} });
  await until("it ran", () => runs.has("one"));

  const api = await startApi({ settings: settingsOf(users.api), version: "1" });
  cleanup.defer(() => api.stop());
  const post = async (path: string, body: object) => {
    const response = await fetch(`${api.url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", "idempotency-key": path },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as { readonly id: string } };
  };
  const request = { controller: "widgets", namespace, name: "one" };
  expect((await post("/v1/reconciles", request)).status).toBe(202);
  const started = await post("/v1/runs", { workflow: "greet", id: "r", input: {} });
  expect(started.status).toBe(202);
  await until("the run ended", async () => {
    const response = await fetch(`${api.url}/v1/runs/${encodeURIComponent(started.body.id)}`);
    return ((await response.json()) as { readonly status: string }).status === "done";
  });
  for (const path of ["/", "/jobs", "/jobs/api/queues", "/v1/overview", "/v1/guards", "/metrics"]) {
    const response = await fetch(`${api.url}${path}`);
    await response.text();
    expect({ path, status: response.status }).toEqual({ path, status: 200 });
  }
  const asApi = { KONVERGE_REDIS_URL: users.api };
  expect(await runCommand(["token", "create", "ci", "--role", "viewer"], asApi)).toMatchObject({
    code: 0,
  });
  const asViewer = { KONVERGE_REDIS_URL: users.viewer };
  await until("an attempt is stored", async () => {
    const { stdout } = await runCommand(["attempt", "list", "-o", "jsonl"], asViewer);
    return stdout !== "";
  });
  for (const args of [["status"], ["attempt", "list"], ["run", "list"], ["guard", "list"]]) {
    const { code, stderr } = await runCommand(args, asViewer);
    expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: "" });
  }
  const denied = await deniedCommands(users.admin);
  // BullMQ stores the options of a queue whenever one is opened, and ignores a failure.
  expect(denied.filter((text) => text !== "konverge-viewer command hset")).toEqual([]);
});

test("a worker cannot read tokens, a viewer cannot write, and the error names the command that prints users", async () => {
  await using cleanup = new AsyncDisposableStack();
  const users = await startWithUsers(cleanup);
  const worker = new Redis(users.worker);
  const viewer = new Redis(users.viewer);
  cleanup.defer(() => worker.disconnect());
  cleanup.defer(() => viewer.disconnect());
  for (const key of [
    "tokens",
    "token-uses",
    "audit",
    "sessions/admin",
    "{answers}/x",
    "{other}/a",
  ]) {
    await expect(worker.get(`konverge:${key}`)).rejects.toThrow(/NOPERM/);
    await expect(
      worker.eval("return redis.call('GET', ARGV[1])", 0, `konverge:${key}`),
    ).rejects.toThrow(/NOPERM|can't access|No permissions/);
  }
  await expect(worker.get("other:{default}")).rejects.toThrow(/NOPERM/);
  const commands = [
    "flushall",
    "keys x",
    "config get x",
    "script flush",
    "acl list",
    "client list",
  ];
  for (const command of commands) {
    const [name = "", ...rest] = command.split(" ");
    await expect(worker.call(name, ...rest)).rejects.toThrow(/NOPERM/);
  }
  await expect(viewer.set("konverge:{default}:x", "1")).rejects.toThrow(/NOPERM/);
  await expect(viewer.publish("konverge:x", "1")).rejects.toThrow(/NOPERM/);

  const ended = await runCommand(["queue", "pause", "widgets", "--reason", "test"], {
    KONVERGE_REDIS_URL: users.viewer,
  });
  expect(ended.code).not.toBe(0);
  expect(ended.stderr).toContain("konverge manifests -o acl");
});
