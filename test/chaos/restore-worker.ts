/** A worker process of a workflow whose steps record their effects in another Redis. */
import { defineConfig, startWorker } from "@konverge/worker";
import { defineWorkflow } from "@konverge/workflow";
import { Redis } from "ioredis";
import { until } from "../support/until.ts";

export interface RestoreWorkerConfig {
  readonly redisUrl: string;
  readonly prefix: string;
  readonly kubeconfig: string;
  readonly toleranceMs: number;
  /** The Redis with the effects, and its keys. */
  readonly journalUrl: string;
  readonly effects: string;
  /** Exists when `send` may end. */
  readonly released: string;
}

export const SHIP = "ship";

if (import.meta.main) {
  const config = JSON.parse(process.argv[2] ?? "{}") as RestoreWorkerConfig;
  const { effects, released } = config;
  const journal = new Redis(config.journalUrl);
  const ship = defineWorkflow(SHIP, { version: 1 }, async (w) => {
    await w.step("charge", async () => void (await journal.rpush(effects, "charge")));
    await w.step("send", async () => {
      await journal.rpush(effects, "send");
      await until("it may end", async () => (await journal.exists(released)) === 1);
    });
  });
  await startWorker({
    config: defineConfig({
      workflows: [ship],
      settings: {
        prefix: config.prefix,
        restoreTolerance: `${config.toleranceMs}ms`,
        leaseDuration: "3s",
        runSweep: "1s",
        logLevel: "error",
      },
    }),
    redis: config.redisUrl,
    kubeconfig: config.kubeconfig,
  });
  process.stdout.write(`up ${process.env["FLEET_PATCH_APPLIED"] ?? ""}\n`);
}
