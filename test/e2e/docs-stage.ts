import { readFileSync } from "node:fs";
import { startApi, type RunningApi } from "@konverge/api";
import { readSettings } from "@konverge/contracts";
import { startWorker, type Config } from "@konverge/worker";
import { onTestFinished } from "vitest";
import { keepLog } from "../../apps/cli/src/testing/kept-log.ts";
import type { EmbeddedServer } from "../integration/kube/embedded-server.ts";
import type { QueueHarness } from "../integration/queue/queue-harness.ts";
import { openReadersShell, type ReadersShell } from "../support/readers-shell.ts";

/** The token of the configuration in the pages. */
export const TOKEN = "the-token-of-the-configuration-0123456789";

export interface DocsStage extends ReadersShell {
  readonly api: RunningApi;
}

/** Starts a worker and the API, and opens a shell whose commands use them. The end of the test stops all. */
export async function openDocsStage(
  { url, prefix }: Pick<QueueHarness, "url" | "prefix">,
  { kubeconfig }: EmbeddedServer,
  config: Config,
  env: NodeJS.ProcessEnv = {},
): Promise<DocsStage> {
  const worker = await startWorker({
    config: { ...config, settings: { prefix, leaseDuration: "3s" } },
    redis: url,
    kubeconfig: { text: readFileSync(kubeconfig, "utf8") },
    log: keepLog([]),
    env,
  });
  onTestFinished(() => worker.kill());
  const settings = {
    ...readSettings({ env: {} }),
    redisUrl: url,
    prefix,
    token: TOKEN,
    apiPort: 0,
  };
  const api = await startApi({ settings: { ...settings, logLevel: "silent" }, version: "test" });
  onTestFinished(() => api.stop());
  const shell = await openReadersShell({
    KONVERGE_REDIS_URL: url,
    KONVERGE_PREFIX: prefix,
    KONVERGE_SERVER: api.url,
    KUBECONFIG: kubeconfig,
  });
  return { ...shell, api };
}
