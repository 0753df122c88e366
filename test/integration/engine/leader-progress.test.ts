import { compareResourceVersions, type ResourceType } from "@konverge/core";
import { defineController, startEngine, type Engine, type Log } from "@konverge/engine";
import type { KubeClient } from "@konverge/kube";
import { createObjectLanes } from "@konverge/lanes";
import { createWorkQueue } from "@konverge/queue";
import { createMetrics } from "@konverge/telemetry";
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from "vitest";
import { until } from "../../support/until.ts";
import { installWidgets, removeWidgets, testServers, type Widget } from "../kube/kube-servers.ts";
import { useQueues } from "../queue/queue-harness.ts";

const GROUP = "progress.test.konverge.dev";
const namespace = "default";
const CLUSTER = "default";
const BUILD = "build-1";

const harness = useQueues();
const [embedded] = testServers();
let client: KubeClient;
let closeServer: () => Promise<void>;
let Widgets: ResourceType<Widget>;

beforeAll(async () => {
  const server = await embedded?.open();
  if (server === undefined) throw new Error("no API server");
  ({ client } = server);
  closeServer = () => server.close();
  Widgets = await installWidgets(client, GROUP);
});
afterEach(async () => {
  const { items } = await client.list(Widgets, { namespace });
  await Promise.all(
    items.map(({ metadata: { name } }) => client.delete(Widgets, { namespace, name })),
  );
});
afterAll(async () => {
  await removeWidgets(client, GROUP);
  await closeServer();
});

const resize = (name: string, size: number) =>
  client.patch(
    Widgets,
    { namespace, name },
    { type: "merge", body: { spec: { size } } },
    { unguarded: true },
  );

interface Process {
  readonly engine: Engine;
  readonly isLeader: () => boolean;
  /** The names of the objects that this process has requested since the last call, or will have until there are `count` of them. */
  readonly requested: (count?: number) => Promise<string[]>;
}

/** Starts a worker. */
async function start(
  name: string,
  { build = BUILD, shards = 1 }: { readonly build?: string; readonly shards?: number } = {},
): Promise<Process> {
  let requested: string[] = [];
  let leads = false;
  const log: Log = {
    debug: () => undefined,
    info: (_fields: object, message?: string) => {
      if (message === "leadership acquired") leads = true;
      if (message === "leadership ended") leads = false;
    },
    warn: () => undefined,
    error: () => undefined,
    child: () => log,
  };
  const { prefix, target: redis } = harness;
  const common = { redis, prefix, cluster: CLUSTER };
  const controller = defineController<Widget>({
    name,
    for: Widgets,
    reconcile: async () => undefined,
  });
  const lanes = createObjectLanes({ ...common, processId: name, onError: () => undefined });
  const engine = await startEngine({
    controllers: [controller],
    client,
    lanes,
    queueFor: () =>
      createWorkQueue({
        ...common,
        controller: name,
        shards,
        observe: () => ({
          ended: (result) => {
            if (!(result instanceof Error)) requested.push(result.key.split("/").at(-1) ?? "");
          },
        }),
      }),
    workerId: crypto.randomUUID(),
    log,
    metrics: createMetrics({ version: "test" }),
    installation: name,
    leaseNamespace: namespace,
    builds: { [name]: build },
    progressEveryMs: 300,
    election: { leaseDurationMs: 3_000, renewDeadlineMs: 2_000, retryPeriodMs: 300 },
  });
  onTestFinished(async () => {
    await engine.stop({ graceMs: 500 });
    lanes.close();
  });
  return {
    engine,
    isLeader: () => leads,
    async requested(count = 0) {
      await until(`${count} objects are requested`, () => new Set(requested).size >= count);
      const since = requested;
      requested = [];
      return [...new Set(since)].toSorted();
    },
  };
}

interface Stored {
  readonly reached?: readonly string[];
}

/** Waits until a leader has stored its progress twice, the second time after its earlier requests and from a version on. */
async function reported(name: string, shards = 1, version = "1"): Promise<void> {
  const { prefix, target: redis } = harness;
  const queue = createWorkQueue({ redis, prefix, cluster: CLUSTER, controller: name, shards });
  try {
    const before = await queue.readProgress();
    const next = (known: string | undefined) =>
      until("progress", async () => {
        const text = await queue.readProgress();
        return text !== known && text;
      });
    await next(await next(before));
    await until(`progress of version ${version}`, async () => {
      const { reached = [] } = JSON.parse((await queue.readProgress()) ?? "{}") as Stored;
      const isThere = (each: string) => (compareResourceVersions(each, version) ?? -1) >= 0;
      return reached.length > 0 && reached.every(isThere);
    });
  } finally {
    await queue.close();
  }
}

async function follow(
  size: number,
  options: { readonly build?: string; readonly shards?: number } = {},
): Promise<{ readonly name: string; readonly last: Process; readonly next: Process }> {
  const names = Array.from({ length: size }, (_, at) => `w-${at}`);
  await Promise.all(
    names.map((name) =>
      client.create(Widgets, { metadata: { namespace, name }, spec: { size: 1 } }),
    ),
  );
  const name = `widgets-${crypto.randomUUID().slice(0, 8)}`;
  const last = await start(name, defined({ shards: options.shards }));
  await until("it leads", last.isLeader);
  await last.requested(size);
  const next = await start(name, options);
  // The watches of the leader reach the version of the follower's first list with a later event, or with a bookmark.
  const { metadata } = await resize("w-0", 2);
  await reported(name, options.shards, metadata.resourceVersion);
  return { name, last, next };
}

const defined = (options: { readonly shards?: number | undefined }) =>
  options.shards === undefined ? {} : { shards: options.shards };

test.each([
  { size: 10, shards: 1 },
  { size: 150, shards: 1 },
  { size: 40, shards: 3 },
])(
  "a new leader of $size objects in $shards shards requests those that changed, and no others",
  async ({ size, shards }) => {
    const { name, last, next } = await follow(size, { shards });
    expect(await next.requested()).toEqual([]);
    await last.engine.stop({ graceMs: 500 });
    await resize("w-3", 2);
    await resize("w-7", 2);
    await client.delete(Widgets, { namespace, name: "w-5" });
    await client.create(Widgets, { metadata: { namespace, name: "new" }, spec: { size: 1 } });
    await until("the other leads", next.isLeader);
    const first = await next.requested(4);
    await reported(name, shards);
    expect([...first, ...(await next.requested())]).toEqual(["new", "w-3", "w-5", "w-7"]);
  },
);

test("a new leader of another build enqueues every object", async () => {
  const { last, next } = await follow(10, { build: "build-2" });
  await last.engine.stop({ graceMs: 500 });
  expect(await next.requested(10)).toHaveLength(10);
});

test("a new leader enqueues every object if Redis may have lost requests meanwhile", async () => {
  const { last, next } = await follow(10);
  await last.engine.stop({ graceMs: 500 });
  const [marker = ""] = await harness.redis.keys(`${harness.prefix}:*/incarnation/*`);
  expect(await harness.redis.del(marker)).toBe(1);
  expect(await next.requested(10)).toHaveLength(10);
});

test("a process that starts after the last leader has stopped enqueues every object", async () => {
  const { name, last, next } = await follow(10);
  await last.engine.stop({ graceMs: 500 });
  await next.engine.stop({ graceMs: 500 });
  const later = await start(name);
  expect(await later.requested(10)).toHaveLength(10);
});
