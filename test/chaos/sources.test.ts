import { createHmac } from "node:crypto";
import { fileURLToPath } from "node:url";
import { createApi, openQueueAccess } from "@konverge/api";
import { openGuardControl } from "@konverge/guard";
import { createControllerRegistry, createWorkQueue } from "@konverge/queue";
import { createMetrics } from "@konverge/telemetry";
import { expect, test } from "vitest";
import { seededRandom } from "../../apps/demo/src/load/seeded-random.ts";
import { createInboundSecrets } from "../../libs/api/src/inbound/inbound-secrets.ts";
import { useQueues } from "../integration/queue/queue-harness.ts";
import { Child } from "../support/child.ts";
import { until } from "../support/until.ts";
import type { SourceLeaderConfig } from "./source-leader.ts";
import { SOURCED, sourcedController, startWorld, type World } from "./source-world.ts";
import { isLongRun, seed } from "../support/test-run.ts";

/** For the long form, a kill every 5 s for 5 minutes. */
const DISASTERS = isLongRun ? 40 : 6;
const EVERY_MS = isLongRun ? 5_000 : 400;
const ITEMS = 20;
const SECRET = "a secret of the test";
const LEADER = fileURLToPath(new URL("source-leader.ts", import.meta.url));

const queues = useQueues();
const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms));

/** Opens the HTTP API of the installation. Returns a function that delivers an event until it is acknowledged. */
async function openHook() {
  const { target: redis, prefix } = queues;
  const { eventSources, for: type } = sourcedController("http://world");
  const registry = createControllerRegistry({ redis, prefix, cluster: "default" });
  const { group, version, kind, resource, scope } = type;
  const sources = eventSources.map((source) => ({
    kind: source.kind,
    name: source.name,
    ...(source.kind === "inbound" ? { inbound: source.inbound } : {}),
  }));
  const announced = { group, version, kind, resource, scope, sources };
  await registry.announce([{ name: SOURCED, cluster: "default", ...announced }]);
  await registry.close();
  const errors: unknown[] = [];
  const access = openQueueAccess({ redis, prefix, onError: () => undefined });
  const guards = openGuardControl({ redis, prefix });
  const api = createApi({
    access,
    guards,
    metrics: createMetrics({ version: "test" }),
    token: undefined,
    cluster: "default",
    inboundSecrets: createInboundSecrets({ given: { hook: [SECRET] } }),
    onError: (error) => errors.push(error),
  });
  return {
    errors,
    async deliver(name: string) {
      const body = JSON.stringify({ name });
      const signature = createHmac("sha256", SECRET).update(body).digest("hex");
      const request = () =>
        new Request("http://localhost/v1/inbound/hook", {
          method: "POST",
          body,
          headers: {
            "content-type": "application/json",
            "x-github-delivery": name,
            "x-hub-signature-256": `sha256=${signature}`,
          },
        });
      await until("it is acknowledged", async () => (await api.fetch(request())).status === 202);
    },
    async [Symbol.asyncDispose]() {
      api.close();
      await Promise.all([access.close(), guards.close()]);
    },
  };
}

/** Processes that run the sources, one at a time, and suspended processes that still act as leader. */
function openLeaders(world: World) {
  let serial = 0;
  const all = new Set<Child>();
  let current: Child | undefined;
  const start = async () => {
    const { url, prefix } = queues;
    const workerId = `leader-${(serial += 1)}`;
    const config: SourceLeaderConfig = { url, prefix, worldUrl: world.url, workerId };
    current = new Child([LEADER, JSON.stringify(config)]);
    all.add(current);
    await current.ready;
  };
  return {
    start,
    async kill() {
      await current?.end("SIGKILL");
      await start();
    },
    /** The suspended process continues beside its successor, and is killed later. */
    async suspend(ms: number) {
      const zombie = current;
      zombie?.signal("SIGSTOP");
      await start();
      await pause(ms);
      zombie?.signal("SIGCONT");
      await pause(ms);
      await zombie?.end("SIGKILL");
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...all].map((child) => child.end("SIGKILL")));
    },
  };
}

test(`no event of a source is lost when leaders are killed and suspended (KONVERGE_TEST_SEED=${seed})`, async () => {
  const random = seededRandom(seed);
  const { target: redis, prefix } = queues;
  await using world = await startWorld();
  await using hook = await openHook();
  const queue = createWorkQueue({ redis, prefix, cluster: "default", controller: SOURCED });
  const handled = new Map<string, number>();
  const worker = queue.work({
    workerId: "w",
    async handle({ key: { name } }) {
      handled.set(name, world.version(name));
      return { outcome: { kind: "done" } };
    },
    onError: () => undefined,
  });
  await using leaders = openLeaders(world);
  await leaders.start();

  const once: string[] = [];
  let isOver = false;
  const load = (async () => {
    for (let serial = 0; !isOver; serial += 1) {
      const name = `e${serial}`;
      const kind = Math.floor(random() * 4);
      if (kind === 0) world.changeItem(`i${Math.floor(random() * ITEMS)}`);
      else once.push(name);
      if (kind === 1) world.addChange(name);
      if (kind === 2) world.emit(name);
      if (kind === 3) await hook.deliver(name);
      await pause(random() * 20);
    }
  })();
  for (let count = 0; count < DISASTERS; count += 1) {
    await pause(isLongRun ? EVERY_MS : random() * EVERY_MS);
    if (random() < 0.25) await leaders.suspend(random() * EVERY_MS);
    else await leaders.kill();
  }
  isOver = true;
  await load;
  let lost: string[] = [];
  await until("all events are handled", () => {
    const items = Array.from({ length: ITEMS }, (_, item) => `i${item}`);
    lost = [
      ...once.filter((name) => !handled.has(name)),
      ...items.filter((name) => (handled.get(name) ?? 0) < world.version(name)),
    ];
    return lost.length === 0;
  }).catch((cause: unknown) => {
    throw new Error(`${lost.length} events lost: ${lost.slice(0, 20).join(", ")}`, { cause });
  });
  expect(once.length).toBeGreaterThan(10);
  expect(hook.errors).toEqual([]);
  await worker.kill();
  await queue.close();
});
