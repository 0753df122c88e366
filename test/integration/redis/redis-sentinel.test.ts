import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { expect, onTestFinished, test, vi } from "vitest";
import { createGuard } from "@konverge/guard";
import { createWorkQueue } from "@konverge/queue";
import { checkRedis, openConsumer } from "@konverge/redis";
import { startTcpProxy } from "../../chaos/tcp-proxy.ts";
import { CLUSTER, CONTROLLER, hold, keyOf, patient, workOn } from "../queue/queue-harness.ts";
import { until } from "../../support/until.ts";
import { createSentinelSecurity, startSentinelSet as startSet } from "./redis-sentinel-fixture.ts";

const http = { kind: "http" } as const;

test("P1: a Sentinel failover loses no acknowledged request; 503 meanwhile, then queue and guard resume", async () => {
  await using cleanup = new AsyncDisposableStack();
  const { primary, sentinel, asked } = await startSet(cleanup);
  const failOverAfter = async (ms: number) => {
    await asked.call("SENTINEL", "SET", "mymaster", "down-after-milliseconds", String(ms));
  };
  const redis = { url: `redis+sentinel://127.0.0.1:${sentinel.port}/mymaster` };
  const queue = createWorkQueue({
    redis,
    controller: CONTROLLER,
    cluster: CLUSTER,
    leaseMs: 2_000,
  });
  cleanup.defer(() => queue.close());
  const guard = await createGuard({ redis, cluster: CLUSTER, workerId: "w" });
  cleanup.defer(() => guard.close());
  const held = hold();
  const worker = workOn(queue, async ({ id }) => {
    if (id.endsWith("/running")) await held.wait();
    const permit = await guard.admit({ verb: "get", resource: "pods", priority: "event" });
    permit.settle({ kind: "response", status: 200 });
    return { kind: "done" };
  });
  const running = await patient(queue).request(keyOf("running"), http);
  await until("it runs", () => worker.active === 1);
  const replicated = new Redis(primary.url);
  replicated.on("error", () => undefined);
  cleanup.defer(() => replicated.disconnect());
  await replicated.set("marker", "");
  await until("the replica has it", async () => (await replicated.wait(1, 1_000)) === 1);
  await failOverAfter(600_000);
  await primary.kill();
  await expect(queue.request(keyOf("refused"), http)).rejects.toMatchObject({
    code: "redis_unavailable",
  });
  await failOverAfter(500);
  const after = await until("the new primary takes requests", () =>
    queue.request(keyOf("after"), http).catch(() => undefined),
  );
  held.release();
  for (const { id } of [running, after]) {
    await until(
      `the end of ${id}`,
      async () => (await queue.getRequest(id).catch(() => undefined))?.phase === "finished",
    );
  }
});

test("finds the primary if a failover message arrives during a query", async () => {
  await using cleanup = new AsyncDisposableStack();
  const { primary, sentinel, asked } = await startSet(cleanup);
  const slow = cleanup.use(await startTcpProxy(sentinel.port));
  const consumer = openConsumer({
    url: `redis+sentinel://127.0.0.1:${slow.port},127.0.0.1:${sentinel.port}/mymaster`,
  });
  const { redis } = consumer;
  redis.on("error", () => undefined);
  cleanup.defer(() => consumer.disconnect());
  await redis.set("before", "yes");
  await until("it listens to both", async () => {
    const clients = String(await asked.call("CLIENT", "LIST"));
    return clients.split("\n").filter((line) => line.includes(" sub=1 ")).length >= 2;
  });
  const replicated = new Redis(primary.url);
  replicated.on("error", () => undefined);
  cleanup.defer(() => replicated.disconnect());
  await replicated.set("marker", "");
  await until("the replica has it", async () => (await replicated.wait(1, 1_000)) === 1);

  const listener = new Redis({ port: sentinel.port });
  cleanup.defer(() => listener.disconnect());
  let isOver = false;
  listener.on("message", () => (isOver = true));
  await listener.subscribe("+switch-master");
  slow.hold();
  await primary.kill();
  await until("the failover", () => isOver);
  slow.heal();
  const answer = await until("the new primary is found", () =>
    redis.set("after", "yes").catch(() => undefined),
  );
  expect(answer).toBe("OK");
});

test("follows a failover of servers and Sentinels with TLS, client certificates and passwords", async () => {
  await using cleanup = new AsyncDisposableStack();
  const dir = mkdtempSync(join(tmpdir(), "konverge-sentinel-tls-"));
  cleanup.defer(() => rmSync(dir, { recursive: true }));
  const security = createSentinelSecurity(dir);
  const { primary, sentinel, asked } = await startSet(cleanup, security);
  const parameters = new URLSearchParams({ ...security.files });
  for (const name of ["password", "sentinelPassword"] as const) {
    const path = join(dir, name);
    writeFileSync(path, `${security[name]}\n`);
    parameters.set(`${name}File`, path);
  }
  const urlWith = (more: URLSearchParams, scheme = "rediss+sentinel") =>
    `${scheme}://127.0.0.1:${sentinel.port}/mymaster?${more.toString().replaceAll("%2F", "/")}`;
  const url = urlWith(parameters);
  await checkRedis({ url });
  const queue = createWorkQueue({ redis: { url }, controller: CONTROLLER, cluster: CLUSTER });
  cleanup.defer(() => queue.close());
  const { closed } = workOn(queue, () => ({ kind: "done" }));
  const untilRun = async (name: string) => {
    await until(`${name} is requested`, () =>
      queue.request(keyOf(name), http).catch(() => undefined),
    );
    await until(`${name} has run`, () => closed.some(({ id }) => id.endsWith(`/${name}`)));
  };
  await untilRun("before");
  await primary.kill();
  await until("the failover", async () => {
    const [, port] = (await asked.call(
      "SENTINEL",
      "GET-MASTER-ADDR-BY-NAME",
      "mymaster",
    )) as string[];
    return Math.abs(Number(port) - primary.port) !== 20_000;
  });
  await untilRun("after");

  // Each of the credentials is required, and so is TLS. ioredis prints errors without a listener.
  const printed = vi.spyOn(console, "error").mockImplementation(() => undefined);
  onTestFinished(() => printed.mockRestore());
  const without = (names: readonly string[]) =>
    new URLSearchParams([...parameters].filter(([name]) => !names.includes(name)));
  for (const wrong of [
    urlWith(without(["cert", "key"])),
    urlWith(without(["passwordFile"])),
    urlWith(without(["sentinelPasswordFile"])),
    urlWith(without(["ca", "cert", "key"]), "redis+sentinel"),
  ]) {
    await expect(checkRedis({ url: wrong }), wrong).rejects.toMatchObject({
      code: "redis_unavailable",
    });
  }
  expect(printed.mock.calls).toEqual([]);
});
