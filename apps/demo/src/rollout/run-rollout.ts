import { createClient } from "@konverge/client";
import { apiServerOf, startLocalStack, type LocalStack } from "@konverge/local-stack";
import { exampleFile } from "../stage/example-file.ts";
import { isolatedEnv } from "../stage/isolated-env.ts";
import { createProgress } from "../stage/progress.ts";
import { CLI_SCRIPT } from "../stage/scripts.ts";
import { addressLine, stayUp, untilInterrupted } from "../stage/stay-up.ts";
import { checkRollout } from "./check-rollout.ts";
import type { DemoWorker } from "./kill-in-write.ts";
import { HOME, playRollout } from "./play-rollout.ts";
import { deployOldApp, APP } from "./rollout-app.ts";
import { renderChecks, renderTimeline } from "./rollout-report.ts";
import { timelineOf } from "./run-timeline.ts";
import { standInForDeployments } from "./stand-in-deployments.ts";
import { startTwoClusters } from "./two-clusters.ts";

export interface RolloutOptions {
  readonly exit: boolean;
  readonly output: "table" | "json";
  readonly logs: string | undefined;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
}

const POD_MS = 400;
const SOAK_SECONDS = 3;

/** Plays the rollout over two clusters and returns the exit code: 0 if all final checks pass. */
export async function runRollout(options: RolloutOptions): Promise<number> {
  const { signal } = options;
  const config = exampleFile("fleet-rollout.config");
  const progress = createProgress(process.stderr);
  const { print } = progress;
  return await untilInterrupted({ signal, progress }, async () => {
    await using clusters = await startTwoClusters();
    await using stack = await startLocalStack({
      name: "demo",
      cli: CLI_SCRIPT,
      startApiServer: apiServerOf(clusters.kubeconfigPath),
      home: HOME,
      env: isolatedEnv(),
      logs: options.logs,
      log: print,
      apiPort: 0,
    });
    await using cleanup = new AsyncDisposableStack();
    print(`two embedded API servers (${stack.serverVersion}), ${stack.redis.version}`);
    print(addressLine(stack.apiUrl, options));
    for (const { name, client } of [clusters.east, clusters.west]) {
      const onError = (error: Error) => print(`simulated Deployments of ${name}: ${error.message}`);
      cleanup.use(
        standInForDeployments(client, { namespace: APP.namespace, podMs: POD_MS, onError }),
      );
    }
    await Promise.all(
      [clusters.east, clusters.west].map(({ client }) => deployOldApp(client, signal)),
    );
    const workers = await startWorkers(config, stack, cleanup);
    const client = createClient({ server: stack.apiUrl });
    const played = await playRollout({
      clusters,
      workers,
      client,
      redisUrl: stack.redis.url,
      installation: stack.installation,
      soakSeconds: SOAK_SECONDS,
      progress,
      signal,
    });
    progress.end();
    const timeline = timelineOf(played.run.steps, played.executions);
    const checks = await checkRollout(clusters, played, timeline);
    const page = `${stack.apiUrl}/runs/${played.run.id}`;
    if (options.output === "json") {
      const { run, killed } = played;
      const document = { scenario: "rollout", run, killed: killed.name, timeline, checks };
      process.stdout.write(`${JSON.stringify(document, null, 2)}\n`);
    } else {
      process.stdout.write(`\n${renderTimeline(timeline)}\n\n${renderChecks(checks)}\n\n`);
    }
    if (!options.exit) await stayUp(page, { signal, print });
    return checks.every(({ ok }) => ok) ? 0 : 1;
  });
}

async function startWorkers(
  config: string,
  stack: LocalStack,
  cleanup: AsyncDisposableStack,
): Promise<DemoWorker[]> {
  const workers = [1, 2].map((number) => {
    const worker = stack.start(["worker", "--config", config], {
      KONVERGE_METRICS_PORT: "0",
      KONVERGE_LEASE_NAMESPACE: APP.namespace,
      // A killed worker must be detected soon in a scenario of a minute.
      KONVERGE_LEASE_DURATION: "4s",
    });
    cleanup.defer(() => worker.stop());
    return { name: `worker ${number}`, process: worker };
  });
  return await Promise.all(
    workers.map(async (worker) => ({
      ...worker,
      metricsUrl: String((await worker.process.logged("worker ready"))["metricsUrl"]),
    })),
  );
}
