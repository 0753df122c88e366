import { ProblemError, type Client } from "@konverge/client";
import { clusterOf, readSettings, type Settings } from "@konverge/contracts";
import { isKonvergeError } from "@konverge/core";
import { Option, type Command } from "commander";
import { explainFailure } from "../process/explain-failure.ts";
import { openClient, type OpenClient } from "./open-client.ts";
import { COMMON_OPTIONS, withOutput, type Output } from "../text/output.ts";
import { systemUser } from "./system-user.ts";
import { exitCodeOf, untilSignal } from "../process/until-signal.ts";

/** The flags of every command that uses the API. */
export interface ClientFlags {
  readonly output: Output;
  readonly server?: string;
  readonly cluster?: string;
}
export interface ActionFlags extends ClientFlags {
  readonly by?: string;
  readonly reason: string;
  readonly idempotencyKey?: string;
  readonly dryRun?: boolean;
}

/** The options behind the fields of queries and bodies, by JSON pointer. */
const OPTIONS: Readonly<Record<string, string>> = {
  "/by": "--by",
  "/reason": "--reason",
  "/cluster": "--cluster",
  "/controller": "<controller>",
  "/namespace": "--namespace",
  "/name": "<name>",
  "/contains": "--contains",
  "/phase": "--phase",
  "/limit": "--limit",
  "/cursor": "--cursor",
  "/ratePerSecond": "<rate>",
  "/server": "--server",
  "/outcome": "--outcome",
  "/hours": "--hours",
};

export interface Asking {
  readonly client: Client;
  readonly settings: Settings;
  /** The cluster of the flag, or else of the settings. */
  readonly cluster: string;
}

/** Runs `work` with a client. A known error becomes one line and an exit code; an unexpected one is thrown. */
export async function runWithClient(
  flags: Omit<ClientFlags, "output">,
  work: (asking: Asking) => Promise<void>,
  context: {
    readonly fixes?: Readonly<Record<string, string>>;
    readonly options?: Readonly<Record<string, string>>;
  } = {},
): Promise<void> {
  let opened: OpenClient | undefined;
  // As PID 1 of a container, a process ignores signals without a listener.
  void untilSignal().then((signal) => process.exit(exitCodeOf(signal)));
  try {
    const env =
      flags.server === undefined ? process.env : { ...process.env, KONVERGE_SERVER: flags.server };
    const settings = readSettings({ env });
    opened = await openClient(settings);
    await work({ client: opened.client, settings, cluster: flags.cluster ?? clusterOf(settings) });
    await opened.close();
    // Signal listeners would keep the process alive.
    for (const signal of ["SIGINT", "SIGTERM"]) process.removeAllListeners(signal);
  } catch (thrown) {
    if (!isKonvergeError(thrown) && !(thrown instanceof ProblemError)) throw thrown;
    const hidden = thrown.code === "internal" ? opened?.failure() : undefined;
    if (hidden !== undefined) throw hidden;
    const { line, exitCode } = explainFailure(thrown, {
      redisUrl: opened?.redisUrl,
      options: { ...OPTIONS, ...context.options },
      fixes: context.fixes,
    });
    process.stderr.write(`konverge: ${line}\n`);
    // Not exitCode: without Redis, the closed client keeps the process alive for two more seconds.
    process.exit(exitCode);
  }
}

/** Returns the author and reason of an action, and its idempotency key. */
export function actionOf({ by, reason, idempotencyKey }: ActionFlags): {
  readonly action: { readonly by: string; readonly reason: string };
  readonly write: { readonly idempotencyKey?: string };
} {
  return {
    action: { by: by ?? systemUser(), reason },
    write: idempotencyKey === undefined ? {} : { idempotencyKey },
  };
}

/** Adds the options of commands for one cluster. */
export function withClient(command: Command): Command {
  return withServer(command).addOption(
    new Option(
      "--cluster <name>",
      "Cluster name (default: KONVERGE_CLUSTER, or default)",
    ).helpGroup(COMMON_OPTIONS),
  );
}

export function withServer(command: Command): Command {
  return withOutput(command).addOption(
    new Option(
      "--server <url>",
      "URL of the HTTP API (default: KONVERGE_SERVER, or Redis)",
    ).helpGroup(COMMON_OPTIONS),
  );
}

/** Adds the options of commands that change something: each change stores its author and reason. */
export function withAction(command: Command): Command {
  return withIdempotencyKey(command)
    .requiredOption("--reason <text>", "Reason, stored and visible to all users (required)")
    .option("--by <name>", "Author (default: system user)")
    .option("--dry-run", "Print the effect without making the change");
}

export function withIdempotencyKey(command: Command): Command {
  return command.addOption(
    new Option(
      "--idempotency-key <key>",
      "Idempotency key; a repeated key runs once (default: random)",
    ).helpGroup(COMMON_OPTIONS),
  );
}

/**
 * Returns the help text below the options of a group: its examples and notes. A command of the group shows its own examples
 * only.
 */
export function groupHelp(examples: string): (context: { readonly command: Command }) => string {
  const connection = `
With --server or KONVERGE_SERVER, commands use the HTTP API with the token in
KONVERGE_TOKEN or KONVERGE_TOKEN_FILE. Otherwise they use Redis directly
(KONVERGE_REDIS_URL, KONVERGE_PREFIX).
Exit codes: see konverge --help.`;
  return ({ command }) => {
    const path = `  ${pathOf(command)}`;
    const lines = examples.split("\n").filter((line) => line.startsWith("  konverge "));
    const own = lines.filter((line) => line === path || line.startsWith(`${path} `));
    if (own.length === lines.length) return `\nExamples:${examples}\n${connection}`;
    return own.length === 0 ? "" : `\nExamples:\n${own.join("\n")}`;
  };
}

/** Returns the names from the program to the command. */
export function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}
