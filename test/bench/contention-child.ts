import { setTimeout } from "node:timers/promises";
import { createGuard } from "@konverge/guard";
import { defineController, defineResource, startEngine, type Log } from "@konverge/engine";
import { createKubeClient, isNotFound, loadKubeCredentials, type KubeClient } from "@konverge/kube";
import { ConfigMap, CustomResourceDefinition } from "@konverge/kube/kinds";
import { createObjectLanes } from "@konverge/lanes";
import { createWorkQueue } from "@konverge/queue";
import { createMetrics } from "@konverge/telemetry";
import type { ObjectKey } from "@konverge/core";
import { z } from "zod";

/** A message of the parent to a worker process. */
export type ContentionCommand = { readonly kind: "go" } | { readonly kind: "stop" };
export type ContentionWord =
  | { readonly kind: "ready" | "armed" | "wrote" }
  | { readonly kind: "calls"; readonly calls: number };

export interface ContentionConfig {
  /** Writes from the first attempt on, instead of from `go` on. */
  readonly startsArmed?: boolean;
  readonly redisUrl: string;
  readonly kubeconfigPath: string;
  readonly prefix: string;
  readonly workerId: string;
  readonly ratePerSecond: number;
  /** Each writer also adds its own name, so that a lost write can be identified. */
  readonly marks?: boolean;
}

/** The time in which a bucket of twice the rate fills. */
const FULL_AGAIN_MS = 2_200;
export const CONTROLLER = "writers";
export const HOT = { namespace: "default", name: "hot" };
export const Writer = defineResource({
  group: "bench.konverge.dev",
  version: "v1",
  kind: "Writer",
  spec: z.object({}),
});

/** The key of the n-th writer. */
export const writerKey = (n: number): ObjectKey => ({
  controller: CONTROLLER,
  cluster: "default",
  resource: Writer.resource,
  group: Writer.group,
  namespace: "default",
  name: `writer-${n}`,
});

/** Creates the contested object and its writers. */
export async function prepareWriters(client: KubeClient, writers: number): Promise<void> {
  await client.create(ConfigMap, { metadata: HOT, data: { count: "0" } });
  await client.create(CustomResourceDefinition, Writer.crd());
  for (;;) {
    try {
      await client.list(Writer, { namespace: "default" });
      break;
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
  for (let n = 0; n < writers; n++) {
    const metadata = { namespace: "default", name: `writer-${n}` };
    await client.create(Writer, { metadata, spec: {} });
  }
}

const silent: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: (fields, message) => console.error(message, fields),
  child: () => silent,
};

/** A worker process whose attempts all write one object. Its only argument is its configuration. */
async function main(config: ContentionConfig): Promise<void> {
  const { prefix, workerId, ratePerSecond } = config;
  const redis = { url: config.redisUrl };
  const tell = (word: ContentionWord) => process.send?.(word);
  let isArmed = config.startsArmed === true;
  let calls = 0;
  const guard = await createGuard({
    redis,
    cluster: "default",
    prefix,
    workerId,
    limits: { ratePerSecond, burst: 2 * ratePerSecond },
  });
  const client = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigPath: config.kubeconfigPath }),
    gate: {
      // The attempts' writes are the only requests for ConfigMaps here.
      admit(call, options) {
        if (isArmed && call.resource === ConfigMap.resource) calls += 1;
        return guard.admit(call, options);
      },
    },
    userAgent: "konverge-bench",
  });
  const lanes = createObjectLanes({
    redis,
    cluster: "default",
    prefix,
    processId: workerId,
    onError: (error) => console.error(error),
  });
  const engine = await startEngine({
    controllers: [
      defineController({
        name: CONTROLLER,
        for: Writer,
        concurrency: 128,
        async reconcile({ kube, object }) {
          // The initial list is also reconciled, before the race.
          if (!isArmed) return;
          await kube.mutate({ type: ConfigMap, ...HOT }, (draft) => {
            const count = String(Number(draft.data?.["count"] ?? 0) + 1);
            const mark = config.marks === true ? { [object.metadata.name]: count } : {};
            draft.data = { ...draft.data, ...mark, count };
          });
          tell({ kind: "wrote" });
        },
      }),
    ],
    client,
    lanes,
    queueFor: ({ name }) =>
      createWorkQueue({ redis, controller: name, cluster: "default", prefix }),
    workerId,
    log: silent,
    metrics: createMetrics({ version: "bench" }),
    installation: prefix,
  });
  process.on("message", (order: ContentionCommand) => {
    if (order.kind === "go") {
      isArmed = true;
      tell({ kind: "armed" });
      return;
    }
    isArmed = false;
    tell({ kind: "calls", calls });
    void (async () => {
      await engine.stop({ graceMs: 1_000 });
      lanes.close();
      await client.close();
      await guard.close();
      process.disconnect();
    })();
  });
  // A new guard starts without tokens. The race is between workers that have run for a while.
  await setTimeout(FULL_AGAIN_MS);
  tell({ kind: "ready" });
}

if (process.send !== undefined && process.argv[2] !== undefined) {
  await main(JSON.parse(process.argv[2]) as ContentionConfig);
}
