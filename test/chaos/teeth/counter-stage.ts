import { fileURLToPath } from "node:url";
import { createApiServer } from "@konverge/apiserver";
import { createLocalGate } from "@konverge/core";
import { createKubeClient, loadKubeCredentials } from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { Child } from "../../support/child.ts";
import { PATIENT_MS } from "../../support/patient.ts";
import { until } from "../../support/until.ts";
import { COUNTER } from "./counting.ts";
import { partsOfRun } from "../../support/test-run.ts";

const PATCHER = new URL("load-patched.ts", import.meta.url).href;
export const LEASE_MS = 1_000;

/** The argument of a worker's process. */
export interface ToothConfig<Disturbance extends string> {
  readonly url: string;
  readonly prefix: string;
  readonly kubeconfig: string;
  readonly workerId: string;
  readonly leaseMs: number;
  readonly disturbance: Disturbance | undefined;
}

/** Workers that increment a counter, a ConfigMap on an API server, and report events. */
export interface CounterStage<Disturbance extends string> {
  readonly redis: { readonly url: string; readonly deadlineMs: number };
  readonly prefix: string;
  readonly startWorker: (disturbance?: Disturbance) => Promise<Child>;
  readonly report: (event: string) => Promise<unknown>;
  /** Waits for an event. */
  readonly reported: (event: string) => Promise<void>;
  readonly counter: () => Promise<number>;
}

/**
 * Opens a stage, and closes it with `cleanup`.
 * @param worker the program of a worker
 * @param patch the protection that is removed from the workers
 */
export async function openCounterStage<Disturbance extends string>(
  cleanup: AsyncDisposableStack,
  worker: URL,
  patch: string | undefined,
): Promise<CounterStage<Disturbance>> {
  const url = process.env["REDIS_URL"] ?? "";
  const server = await createApiServer({});
  cleanup.defer(() => server.close());
  const { kubeconfig } = server;
  const admin = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigText: kubeconfig }),
    gate: createLocalGate({ ratePerSecond: 1_000, burst: 1_000 }),
    userAgent: "admin",
  });
  cleanup.defer(() => admin.close());
  const { namespace, name } = COUNTER;
  await admin.create(ConfigMap, { metadata: { namespace, name }, data: { n: "0" } });
  const redis = new Redis(url);
  const prefix = `test-tooth-${process.pid}-${Date.now()}`;
  cleanup.defer(async () => {
    const keys = await redis.keys(`${prefix}:*`);
    if (keys.length > 0) await redis.unlink(...keys);
    await redis.quit();
  });
  let serial = 0;
  return {
    redis: { url, deadlineMs: PATIENT_MS },
    prefix,
    async startWorker(disturbance) {
      const workerId = `w${(serial += 1)}`;
      const place = { url, prefix, kubeconfig, workerId, leaseMs: LEASE_MS };
      const config: ToothConfig<Disturbance> = { ...place, disturbance };
      const patcher = patch === undefined ? [] : ["--import", PATCHER];
      const child = new Child([...patcher, fileURLToPath(worker), JSON.stringify(config)], {
        env: patch === undefined ? {} : { FLEET_PATCH: patch },
      });
      cleanup.use(child);
      expect((await child.ready).trim()).toBe(`up ${patch ?? ""}`.trim());
      return child;
    },
    report: (event) => redis.rpush(`${prefix}:events`, event),
    async reported(event) {
      const isThere = async () => (await redis.lrange(`${prefix}:events`, 0, -1)).includes(event);
      await until(event, isThere);
    },
    async counter() {
      const { data } = await admin.get(ConfigMap, { namespace, name });
      return Number(data?.["n"]);
    },
  };
}

/**
 * Tests that the counter is right in the scenario of each protection, and wrong without that protection. A short run has half of
 * the protections.
 * @param play plays a scenario and returns the actual and the expected counter
 */
export function testTeeth<Name extends string>(
  names: readonly Name[],
  play: (
    scenario: Name,
    patch?: Name,
  ) => Promise<{ readonly got: number; readonly wanted: number }>,
): void {
  const chosen = partsOfRun(names, 2);
  test.each(chosen)(
    "P10: counts correctly in the scenario of %s with every protection",
    async (name) => {
      const { got, wanted } = await play(name);
      expect(got).toBe(wanted);
    },
  );

  test.each(chosen)("counts incorrectly without the protection %s", async (name) => {
    const { got, wanted } = await play(name, name);
    expect(got).not.toBe(wanted);
  });
}
