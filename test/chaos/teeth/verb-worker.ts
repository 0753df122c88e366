/** A worker whose process dies or stops at one place of a counting step. */
import { createLocalGate } from "@konverge/core";
import { createKubeClient, loadKubeCredentials } from "@konverge/kube";
import { openWorkflows } from "@konverge/workflow";
import { Redis } from "ioredis";
import { until } from "../../support/until.ts";
import type { ToothConfig } from "./counter-stage.ts";
import { makeCounting, type Disturbance } from "./counting.ts";

const config = JSON.parse(process.argv[2] ?? "{}") as ToothConfig<Disturbance>;
const { url, prefix, kubeconfig, workerId, leaseMs, disturbance } = config;
const redis = new Redis(url);
const client = createKubeClient({
  credentials: loadKubeCredentials({ kubeconfigText: kubeconfig }),
  gate: createLocalGate({ ratePerSecond: 1_000, burst: 1_000 }),
  userAgent: workerId,
});
const events = `${prefix}:events`;
const released = async () =>
  await until("released", async () => (await redis.lrange(events, 0, -1)).includes("released"));
openWorkflows({ redis: { url }, prefix, leaseMs }).work({
  workflows: [
    makeCounting(
      disturbance,
      (event) => redis.rpush(events, event),
      async () => void (await released()),
    ),
  ],
  workerId,
  clusters: { home: "default", client: async () => client },
});
const patched = process.env["FLEET_PATCH_APPLIED"] ?? "";
process.stdout.write(`up ${patched}\n`);
