import { clusterOf, readSettings, type Settings } from "@konverge/contracts";
import type { KubeCredentialsOptions } from "@konverge/kube";
import type { ClusterOptions } from "@konverge/worker";
import { InvalidArgumentError, Option, type Command } from "commander";
import { loadWorkerConfig } from "../config/load-config.ts";
import type { OwnFleet } from "../dev/other-fleet.ts";
import { serveUntilSignal, type Served } from "../process/serve-until-signal.ts";
import { untilSignal } from "../process/until-signal.ts";
import { readVersion } from "../process/version.ts";

interface DevFlags {
  readonly config: string;
  readonly cluster: "embedded" | "kubeconfig";
  readonly kubeconfig?: string;
  readonly yes?: boolean;
  readonly port?: number;
  readonly crds?: readonly string[];
}

interface DevWorkerFlags {
  readonly config: string;
  readonly shared?: boolean;
  readonly crds?: readonly string[];
}

export function addDevCommand(program: Command): void {
  program
    .command("dev")
    .description("Run a local stack that reloads on save")
    .option("--config <file>", "Configuration file", "konverge.config.ts")
    .addOption(
      new Option("--cluster <kind>", "API server: embedded, or the one of your kubeconfig")
        .choices(["embedded", "kubeconfig"])
        .default("embedded"),
    )
    .option("--kubeconfig <file>", "Kubeconfig for --cluster kubeconfig (default: KUBECONFIG)")
    .option("--yes", "Skip the confirmation of --cluster kubeconfig")
    .option(
      "--port <number>",
      "Port of the HTTP API and dashboard; 0 selects a free port (default: KONVERGE_API_PORT, or else 7070)",
      parsePort,
    )
    .option(
      "--crds <paths...>",
      "Files or folders with CRDs of other projects, for the embedded API server",
    )
    .addHelpText(
      "after",
      "\nThe stack consists of an API server, Redis, the HTTP API, the dashboard and a worker. It uses the Redis of REDIS_URL\nif set, or else starts one. CRDs are applied each time the worker starts. If a file fails to load, the error is\nprinted and the previous worker keeps running. Type errors are printed if the project has TypeScript. Press Ctrl-C\nto stop everything.\n\nWith --cluster kubeconfig, objects, CRDs and finalizers stay in the cluster. A cluster in which other workers run the\nsame controllers is rejected.",
    )
    .action(async (flags: DevFlags) => {
      const { runDev } = await import("../dev/run-dev.ts");
      const stop = new AbortController();
      void untilSignal().then((signal) => stop.abort(new Error(signal)));
      await runDev({
        ...flags,
        crds: flags.crds ?? [],
        kubeconfig: flags.kubeconfig ?? process.env["KUBECONFIG"],
        port: flags.port ?? readSettings({ env: process.env }).apiPort,
        isConfirmed: flags.yes === true,
        print: (line) => process.stderr.write(`${line}\n`),
        signal: stop.signal,
      });
      // The listener for a second Ctrl-C would keep the process alive.
      process.removeAllListeners("SIGINT");
      process.removeAllListeners("SIGTERM");
    });
  program
    .command("dev-worker", { hidden: true })
    .requiredOption("--config <file>")
    .option("--shared")
    .option("--crds <paths...>")
    .action(
      async (flags: DevWorkerFlags) =>
        await serveUntilSignal((stopping) => startDevWorker(flags, stopping)),
    );
}

async function startDevWorker(
  { config: path, shared = false, crds = [] }: DevWorkerFlags,
  stopping: AbortSignal,
): Promise<Served> {
  const { applyCrds } = await import("../config/apply-crds.ts");
  const { loadForeignKinds } = await import("../crd-types/foreign-kinds.ts");
  const { kubeconfigOf } = await import("../config/kubeconfig-of.ts");
  const { isClusterProvider, namesOfClusters, startWorkerProcess } =
    await import("@konverge/worker");
  const { config: written, settings: given } = await loadWorkerConfig(path, process.env);
  // The stack has one cluster.
  const cluster = stackCluster(namesOfClusters(written.clusters), given);
  const settings = { ...given, cluster };
  const clusters = isClusterProvider(written.clusters)
    ? { [cluster]: {} }
    : withoutAddresses(written.clusters);
  const config = { ...written, clusters };
  const kubeconfig = kubeconfigOf(settings, config);
  if (shared) await checkOtherFleet(kubeconfig, { ...settings, ...config });
  await applyCrds(config, kubeconfig, { others: await loadForeignKinds(crds) });
  return await startWorkerProcess({ config, settings, version: readVersion(), stopping });
}

async function checkOtherFleet(kubeconfig: KubeCredentialsOptions, own: OwnFleet): Promise<void> {
  const [{ assertNoOtherFleet }, { createKubeClient, loadKubeCredentials }, { createLocalGate }] =
    await Promise.all([
      import("../dev/other-fleet.ts"),
      import("@konverge/kube"),
      import("@konverge/core"),
    ]);
  const client = createKubeClient({
    credentials: loadKubeCredentials(kubeconfig),
    gate: createLocalGate({ ratePerSecond: 50, burst: 50 }),
    userAgent: `konverge-cli/${readVersion()}`,
  });
  try {
    await assertNoOtherFleet(client, own);
  } finally {
    await client.close();
  }
}

/** Returns the cluster of the configuration that the stack runs as. */
function stackCluster(names: readonly string[], settings: Settings): string {
  const name = clusterOf(settings);
  const [first = name] = names;
  return settings.cluster !== undefined || names.includes(name) ? name : first;
}

/** Drops the addresses of the clusters, because the command line selects the cluster. */
function withoutAddresses(
  clusters: Readonly<Record<string, ClusterOptions>>,
): Readonly<Record<string, ClusterOptions>> {
  const entries = Object.entries(clusters).map(
    ([name, { kubeconfig: _path, context: _context, ...rest }]) => [name, rest] as const,
  );
  return Object.fromEntries(entries);
}

function parsePort(text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new InvalidArgumentError("Use a port from 0 to 65535.");
  }
  return port;
}
