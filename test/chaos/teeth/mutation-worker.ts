/** A worker of mutations whose process dies or stops at its first read or write. */
import { createLocalGate } from "@konverge/core";
import { createKubeClient, loadKubeCredentials, type KubeClient } from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import { createObjectLanes } from "@konverge/lanes";
import { openMutations } from "@konverge/mutations";
import { Redis } from "ioredis";
import type { ToothConfig } from "./counter-stage.ts";

/** After the read, before the write is sent, or after it was made. */
export type MutationDisturbance = "halt after read" | "halt before write" | "die after write";

const config = JSON.parse(process.argv[2] ?? "{}") as ToothConfig<MutationDisturbance>;
const { url, prefix, kubeconfig, workerId, leaseMs, disturbance } = config;
const redis = new Redis(url);
const events = `${prefix}:events`;
let isDisturbed = false;

async function disturb(where: MutationDisturbance): Promise<void> {
  if (disturbance !== where || isDisturbed) return;
  isDisturbed = true;
  if (where === "die after write") process.kill(process.pid, "SIGKILL");
  await redis.rpush(events, "halting");
  process.kill(process.pid, "SIGSTOP");
}

/** Disturbs the first read or write of a client and of its scopes. */
function disturbed(client: KubeClient): KubeClient {
  return new Proxy(client, {
    get(target, name) {
      const own: unknown = Reflect.get(target, name, target);
      if (typeof own !== "function") return own;
      const call = (args: unknown[]): unknown => Reflect.apply(own, target, args);
      if (name === "scoped") return (...args: unknown[]) => disturbed(call(args) as KubeClient);
      if (name !== "get" && name !== "patch") return (...args: unknown[]) => call(args);
      return async (...args: unknown[]): Promise<unknown> => {
        if (name === "patch") await disturb("halt before write");
        try {
          const object = await call(args);
          await disturb(name === "get" ? "halt after read" : "die after write");
          return object;
        } finally {
          if (isDisturbed) await redis.rpush(events, "continued");
        }
      };
    },
  });
}

const client = createKubeClient({
  credentials: loadKubeCredentials({ kubeconfigText: kubeconfig }),
  gate: createLocalGate({ ratePerSecond: 1_000, burst: 1_000 }),
  userAgent: workerId,
});
const onError = () => undefined;
const place = { redis: { url }, prefix, cluster: "default" };
const lanes = createObjectLanes({ ...place, processId: workerId, onError, holdMs: 500 });
openMutations({ ...place, leaseMs, onError }).work({
  client: disturbed(client),
  lanes,
  kinds: [ConfigMap],
  workerId,
  // The next mutation is applied after the disturbed attempt.
  concurrency: 1,
  sweepEveryMs: 200,
});
process.stdout.write(`up ${process.env["FLEET_PATCH_APPLIED"] ?? ""}\n`);
