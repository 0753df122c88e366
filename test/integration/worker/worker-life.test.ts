import { defineConfig } from "@konverge/worker";
import { defineController, type Controller } from "@konverge/engine";
import { openGuardControl } from "@konverge/guard";
import { createApiServer } from "@konverge/apiserver";
import { expect, test } from "vitest";
import { ConfigMap, Lease } from "@konverge/kube/kinds";
import { hold } from "../queue/queue-harness.ts";
import { useWorkers } from "./worker-harness.ts";
import { type LogLine, keepLog } from "../../../apps/cli/src/testing/kept-log.ts";
import { until } from "../../support/until.ts";
import { startTcpProxy } from "../../chaos/tcp-proxy.ts";

const workers = useWorkers("life.test.konverge.dev");
const namespace = "default";

const widgets = (options: Partial<Parameters<typeof defineController>[0]> = {}): Controller =>
  defineController({
    name: "widgets",
    for: workers.Widgets,
    reconcile: async () => undefined,
    ...options,
  });
const make = (name: string) =>
  workers.client.create(workers.Widgets, { metadata: { namespace, name }, spec: {} });
const leaseOf = async () => {
  const { items } = await workers.client.list(Lease, { namespace });
  const { prefix } = workers.queues;
  return items.find(
    ({ metadata: { name } }) =>
      name.startsWith(`${prefix}-`) && name !== `${prefix}-redis.progress`,
  );
};
const keys = () => workers.queues.redis.keys(`${workers.queues.prefix}:*`);

test("start order: configuration, then Redis, then the API server", async () => {
  const before = workers.calls().length;
  await expect(
    workers.start([widgets()], { redis: "redis://127.0.0.1:1", cluster: "nowhere" }),
  ).rejects.toMatchObject({ code: "invalid_config", message: expect.stringMatching(/nowhere/) });
  await expect(workers.start([widgets()], { redis: "redis://127.0.0.1:1" })).rejects.toMatchObject({
    code: "redis_unavailable",
  });
  expect(workers.calls().length).toBe(before);
});

test("start order: does not bind or announce an unreachable cluster", async () => {
  const gone = await createApiServer({});
  await gone.close();
  await expect(
    workers.start([widgets()], { kubeconfig: { text: gone.kubeconfig } }),
  ).rejects.toMatchObject({ code: "kube_unreachable" });
  expect((await keys()).filter((key) => /\/(uid|controllers|workers)$/.test(key))).toEqual([]);
});

test("a worker that starts with an open breaker waits until it closes", async () => {
  await using guards = openGuardControl({
    redis: workers.queues.target,
    prefix: workers.queues.prefix,
  });
  const done = hold();
  const controllers = [widgets({ reconcile: async () => done.release() })];
  const first = await workers.start(controllers);
  await first.stop();
  await guards.isolate("default", { by: "test", reason: "the server is away" });
  await make("waits");
  const lines: LogLine[] = [];
  const starting = workers.start(controllers, { log: keepLog(lines) });
  await until("it says that it waits", () =>
    lines.some(({ message }) => message === "waiting for the API server"),
  );
  await guards.reset("default", { by: "test", reason: "it is back" });
  expect((await starting).ready).toBe(true);
  await done.wait();
});

test("a worker that starts with a slow Redis waits for it", async () => {
  await using proxy = await startTcpProxy(Number(new URL(workers.queues.url).port));
  proxy.hold();
  const lines: LogLine[] = [];
  const starting = workers.start([widgets()], {
    redis: `redis://127.0.0.1:${proxy.port}`,
    log: keepLog(lines),
  });
  await until("it reports that it waits", () =>
    lines.some(({ message }) => message === "waiting for Redis"),
  );
  proxy.heal();
  const worker = await starting;
  expect(worker.ready).toBe(true);
  await worker.stop();
});

test("start order: no election for a kind that is not served", async () => {
  const unserved = { ...workers.Widgets, kind: "Gadget", resource: "gadgets" };
  await expect(workers.start([widgets({ for: unserved })])).rejects.toMatchObject({
    code: "crd_mismatch",
  });
  expect(await leaseOf()).toBeUndefined();
});

test("rejects a second cluster with the same name, with both uids and a fix", async () => {
  await workers.start([widgets()]);
  await using other = await createApiServer({});
  const uid = await workers.queues.redis.get(`${workers.queues.prefix}:{default}/uid`);
  const refusal = await workers
    .start([defineController({ name: "maps", for: ConfigMap, reconcile: async () => undefined })], {
      kubeconfig: { text: other.kubeconfig },
    })
    .catch((error: unknown) => error);
  expect(refusal).toMatchObject({ code: "cluster_mismatch" });
  const { message } = refusal as Error;
  expect(message).toContain(String(uid));
  expect(message.match(/[0-9a-f]{8}-[0-9a-f-]{27}/g)).toHaveLength(2);
  expect(message).toMatch(/use another cluster name, prefix or Redis/);
});

test("rejects a changed number of shards, with the number to set", async () => {
  await workers.start([widgets()]);
  const config = defineConfig({
    controllers: [widgets()],
    clusters: { default: { shards: 4 } },
    settings: { prefix: workers.queues.prefix },
  });
  await expect(workers.start([widgets()], { config })).rejects.toMatchObject({
    code: "shards_mismatch",
    message: expect.stringMatching(
      /have 1 shards in this Redis, but 4 are configured; set shards to 1/,
    ),
  });
});

test("stop order: not ready, no new work, drain, then leadership and the entry in the list of workers", async () => {
  const held = hold();
  const begun: string[] = [];
  const worker = await workers.start([
    widgets({
      concurrency: 1,
      reconcile: async ({ object, kube }) => {
        begun.push(object.metadata.name);
        await held.wait();
        await kube.mutateStatus(object, (draft) => {
          draft.status["ended"] = true;
        });
      },
    }),
  ]);
  await make("a");
  await until("the attempt runs", () => begun.length === 1);
  const stopped = worker.stop({ graceMs: 60_000 });
  expect(worker.ready).toBe(false);
  await make("b");
  // It leads while it drains: other workers take its requests.
  expect((await leaseOf())?.spec?.holderIdentity).toBe(worker.workerId);
  held.release();
  await stopped;
  const { status } = await workers.client.get(workers.Widgets, { namespace, name: "a" });
  expect(status).toMatchObject({ ended: true });
  expect(begun).toEqual(["a"]);
  expect((await leaseOf())?.spec?.holderIdentity).toBe("");
  const listed = `${workers.queues.prefix}:{default}/workers`;
  expect(await workers.queues.redis.hlen(listed)).toBe(0);
});

test("kill() during a stop aborts running attempts, and the key runs again in another worker", async () => {
  let aborted: unknown;
  const begun = hold();
  const first = await workers.start([
    widgets({
      reconcile: async ({ signal }) => {
        begun.release();
        await new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            aborted = signal.reason;
            reject(new Error("aborted"));
          });
        });
      },
    }),
  ]);
  await make("a");
  await begun.wait();
  const stopped = first.stop({ graceMs: 600_000 });
  await first.kill();
  await stopped;
  expect(aborted).toMatchObject({ reason: "shutdown" });
  const again = hold();
  await workers.start([widgets({ reconcile: async () => again.release() })]);
  await again.wait();
});
