/** An engine in its own process, with a misbehaving handler. Prints its log as JSON lines. */
import { createLocalGate, type ResourceType } from "@konverge/core";
import { defineController, reportStrayErrors, startEngine } from "@konverge/engine";
import { createKubeClient, loadKubeCredentials, type KubeconfigOptions } from "@konverge/kube";
import { Secret } from "@konverge/kube/kinds";
import { createObjectLanes } from "@konverge/lanes";
import { createWorkQueue } from "@konverge/queue";
import { createLogger, createMetrics } from "@konverge/telemetry";
import { blockEventLoop } from "../../support/block-event-loop.ts";
import type { Widget } from "../kube/kube-servers.ts";

export interface EngineChildConfig {
  readonly url: string;
  readonly prefix: string;
  readonly kubeconfig: KubeconfigOptions;
  readonly controller: string;
  readonly widgets: ResourceType<Widget>;
  readonly leaseMs: number;
  /** Time that the handler of the object `blocks` blocks the event loop. */
  readonly blockMs: number;
  /** Name of a Secret whose `token` the handler puts into a late error. */
  readonly secret: string;
  /** Code outside handlers throws. */
  readonly fatal: boolean;
}
const config = JSON.parse(process.argv[2] ?? "{}") as EngineChildConfig;
const { url, prefix, leaseMs } = config;
const redis = { url };
const log = createLogger({ service: "child", version: "test" });
reportStrayErrors({ log });

const controller = defineController({
  name: config.controller,
  for: config.widgets,
  reconcile: async ({ object, kube, signal, log: handlerLog }) => {
    switch (object.metadata.name) {
      case "blocks": {
        handlerLog.info({}, "begins to block");
        blockEventLoop(config.blockMs);
        return;
      }
      case "strays": {
        const { data } = await kube.get(Secret, config.secret);
        const token = Buffer.from(data?.["token"] ?? "", "base64").toString();
        setTimeout(() => {
          throw new Error("thrown by a timer");
        }, 20);
        setTimeout(() => void Promise.reject(new Error(`rejected late ${token}`)), 20);
        void (async () => {
          await new Promise((resolve) => setTimeout(resolve, 20));
          throw undefined;
        })();
        return;
      }
      case "freezes": {
        const write = async (by: string) => {
          try {
            await kube.mutate(object, (draft) => {
              draft.spec = { ...draft.spec, by };
            });
            handlerLog.info({ by, code: "written" }, "has tried to write");
          } catch (error) {
            const { code } = error as { readonly code?: string };
            handlerLog.info({ by, code }, "has tried to write");
          }
        };
        let lastMs = performance.now();
        handlerLog.info({}, "may be frozen");
        // Each tick is short, so a gap means that the whole process stopped.
        for (;;) {
          await new Promise((resolve) => setTimeout(resolve, 10));
          const gapMs = performance.now() - lastMs;
          lastMs = performance.now();
          if (gapMs > leaseMs) break;
        }
        await write("the first thing after the stop");
        while (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, 10));
        handlerLog.info({ reason: String(signal.reason) }, "has been aborted");
        await write("after the abort");
        return;
      }
      default:
        handlerLog.info({ name: object.metadata.name }, "is alive");
    }
  },
});
const client = createKubeClient({
  credentials: loadKubeCredentials(config.kubeconfig),
  gate: createLocalGate({ ratePerSecond: 2_000, burst: 2_000 }),
  userAgent: "konverge-test-child/1",
});
await startEngine({
  controllers: [controller],
  client,
  lanes: createObjectLanes({
    redis,
    cluster: "default",
    prefix,
    processId: "child",
    onError: () => undefined,
  }),
  queueFor: ({ name }) =>
    createWorkQueue({ redis, controller: name, cluster: "default", prefix, leaseMs }),
  workerId: "child",
  log,
  metrics: createMetrics({ version: "test" }),
  installation: `child-${process.pid}`,
  leaseNamespace: "default",
});
if (config.fatal) {
  setTimeout(() => {
    throw new Error("outside handlers");
  });
}
