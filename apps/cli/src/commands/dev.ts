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
    .description(
      "API server, Redis, HTTP API, dashboard and a worker on this machine; saving a file replaces the worker",
    )
    .option("--config <file>", "configuration file", "konverge.config.ts")
    .addOption(
      new Option("--cluster <kind>", "API server: one of its own, or that of your kubeconfig")
        .choices(["embedded", "kubeconfig"])
        .default("embedded"),
    )
    .option("--kubeconfig <file>", "for --cluster kubeconfig; default KUBECONFIG")
    .option("--port <number>", "port of API and dashboard; 0 takes a free one", parsePort, 7070)
    .addHelpText(
      "after",
      "\nRedis: that of REDIS_URL, else one of its own. CRDs are applied at each start of the worker. A file that cannot be loaded\nis told, and the old worker works on. Ctrl-C ends all of it.",
    )
    .action(async (flags: DevFlags) => {
      const { runDev } = await import("../dev/run-dev.ts");
      const stop = new AbortController();
      void untilSignal().then((signal) => stop.abort(new Error(signal)));
      await runDev({
        ...flags,
        kubeconfig: flags.kubeconfig ?? process.env["KUBECONFIG"],
        say: (line) => process.stderr.write(`${line}\n`),
        signal: stop.signal,
      });
      // What a second Ctrl-C listens to would hold the process.
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

/** Whatever clusters the file names, the one to play with was chosen on the command line. */
function withoutAddresses(clusters: Config["clusters"]): Config["clusters"] {
  const entries = Object.entries(clusters).map(
    ([name, { kubeconfig: _path, context: _context, ...rest }]) => [name, rest] as const,
  );
  return Object.fromEntries(entries);
}

function parsePort(text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new InvalidArgumentError("write a port from 0 to 65535.");
  }
  return port;
}
