import { defined } from "@konverge/core";
import { writeFile } from "node:fs/promises";
import { InvalidArgumentError, type Command } from "commander";
import { untilSignal } from "../process/until-signal.ts";
import { readVersion } from "../process/version.ts";

interface ApiserverOptions {
  readonly host: string;
  readonly port: number;
  readonly dataDir?: string;
  readonly auditLog?: string;
  readonly kubeconfigOut?: string;
  readonly advertiseHost?: string;
  readonly latency: number;
  readonly controllers: boolean;
}

/** Verbs as in the audit log. */
const SLOWED = ["get", "list", "create", "update", "patch", "delete"];

export function addApiserverCommand(program: Command): void {
  program
    .command("apiserver")
    .description("Run the embedded Kubernetes API server")
    .option("--host <address>", "Address to listen on", "127.0.0.1")
    .option("--port <number>", "Port to listen on; 0 selects a free port", parsePort, 6443)
    .option("--data-dir <dir>", "Data directory (default: in memory)")
    .option("--audit-log <file>", "File that receives an audit event per request, as JSON lines")
    .option("--kubeconfig-out <file>", "Write a kubeconfig to this file")
    .option(
      "--latency <ms>",
      "Artificial latency in ms for all requests except watches",
      parseMs,
      0,
    )
    .option(
      "--controllers",
      "Delete owned objects and deleted Pods, and count PodDisruptionBudgets",
      false,
    )
    .option("--advertise-host <name>", "Host name written to the kubeconfig")
    .addHelpText("after", "\nFor trials and tests only: the server has no authentication.")
    .action(
      async ({
        host,
        port,
        dataDir,
        auditLog,
        kubeconfigOut,
        advertiseHost,
        latency,
        controllers,
      }: ApiserverOptions) => {
        const { createLogger } = await import("@konverge/telemetry");
        const { createApiServer } = await import("@konverge/apiserver");
        const log = createLogger({ service: "apiserver", version: readVersion() });
        const server = await createApiServer({
          host,
          port,
          controllers,
          ...defined({ dataDir, auditLog }),
        });
        if (latency > 0) {
          server.inject({ verbs: SLOWED, effect: { kind: "latency", ms: latency } });
        }
        if (kubeconfigOut !== undefined) {
          const url = new URL(server.url);
          if (advertiseHost !== undefined) url.hostname = advertiseHost;
          const text = server.kubeconfig.replaceAll(server.url, url.href.replace(/\/$/, ""));
          await writeFile(kubeconfigOut, text, { mode: 0o600 });
        }
        log.info({ url: server.url, kubeconfig: kubeconfigOut, dataDir }, "API server listening");
        await untilSignal();
        await server.close();
      },
    );
}

function parseMs(text: string): number {
  const ms = Number(text);
  if (!(ms >= 0 && ms <= 60_000))
    throw new InvalidArgumentError("Use milliseconds from 0 to 60000.");
  return ms;
}

function parsePort(text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new InvalidArgumentError("Use a port from 0 to 65535.");
  }
  return port;
}
