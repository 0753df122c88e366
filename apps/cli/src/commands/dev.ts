import type { Config } from "@konverge/worker";
import { InvalidArgumentError, Option, type Command } from "commander";
import { kubeconfigOf } from "../config/kubeconfig-of.ts";
import { loadWorkerConfig } from "../config/load-config.ts";
import { untilSignal } from "../process/until-signal.ts";
import { readVersion } from "../process/version.ts";

interface DevFlags {
  readonly config: string;
  readonly cluster: "embedded" | "kubeconfig";
  readonly kubeconfig?: string;
  readonly port: number;
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
    .option(
      "--port <number>",
      "Port of the HTTP API and dashboard; 0 selects a free port",
      parsePort,
      7070,
    )
    .addHelpText(
      "after",
      "\nThe stack consists of an API server, Redis, the HTTP API, the dashboard and a worker. It uses the Redis of REDIS_URL\nif set, or else starts one. CRDs are applied each time the worker starts. If a file fails to load, the error is\nprinted and the previous worker keeps running. Press Ctrl-C to stop everything.",
    )
    .action(async (flags: DevFlags) => {
      const { runDev } = await import("../dev/run-dev.ts");
      const stop = new AbortController();
      void untilSignal().then((signal) => stop.abort(new Error(signal)));
      await runDev({
        ...flags,
        kubeconfig: flags.kubeconfig ?? process.env["KUBECONFIG"],
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
    .action(async ({ config: path }: { readonly config: string }) => {
      const { applyCrds } = await import("../config/apply-crds.ts");
      const { startWorkerProcess } = await import("@konverge/worker");
      const { config: written, settings } = await loadWorkerConfig(path, process.env);
      const config = { ...written, clusters: withoutAddresses(written.clusters) };
      await applyCrds(config, kubeconfigOf(settings, config));
      const worker = await startWorkerProcess({ config, settings, version: readVersion() });
      await untilSignal(() => void worker.kill());
      await worker.stop();
    });
}

/** Drops the addresses of the clusters, because the command line selects the cluster. */
function withoutAddresses(clusters: Config["clusters"]): Config["clusters"] {
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
