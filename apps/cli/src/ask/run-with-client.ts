import { ProblemError, type Client } from "@konverge/client";
import { readSettings, type Settings } from "@konverge/contracts";
import { isKonvergeError } from "@konverge/core";
import type { Command } from "commander";
import { explainFailure } from "../process/explain-failure.ts";
import { openClient, type OpenClient } from "./open-client.ts";
import { withOutput, type Output } from "../text/output.ts";
import { systemUser } from "./system-user.ts";
import { untilSignal } from "../process/until-signal.ts";

/** Of every command that asks the API. */
export interface ClientFlags {
  readonly output: Output;
  readonly server?: string;
  readonly cluster?: string;
}
export interface OrderFlags extends ClientFlags {
  readonly by?: string;
  readonly reason: string;
  readonly idempotencyKey?: string;
  readonly dryRun?: boolean;
}

/** How the fields of queries and bodies are typed here. */
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
  /** The one that is meant: of the flag, else of the settings. */
  readonly cluster: string;
}

/** Does `work` with a client. What went wrong is one line and an exit code; what nobody foresaw stays an error. */
export async function runWithClient(
  flags: Omit<ClientFlags, "output">,
  work: (asking: Asking) => Promise<void>,
  context: {
    readonly cures?: Readonly<Record<string, string>>;
    readonly options?: Readonly<Record<string, string>>;
  } = {},
): Promise<void> {
  let opened: OpenClient | undefined;
  // Also as the first process of a container, where signals without a listener do nothing.
  void untilSignal().then((signal) => process.exit(signal === "SIGINT" ? 130 : 143));
  try {
    const env =
      flags.server === undefined ? process.env : { ...process.env, KONVERGE_SERVER: flags.server };
    const settings = readSettings({ env });
    opened = await openClient(settings);
    await work({ client: opened.client, settings, cluster: flags.cluster ?? settings.cluster });
    await opened.close();
    // What listens to signals would hold the process.
    for (const signal of ["SIGINT", "SIGTERM"]) process.removeAllListeners(signal);
  } catch (thrown) {
    const unforeseen = opened?.failure();
    if (unforeseen !== undefined) throw unforeseen;
    if (!isKonvergeError(thrown) && !(thrown instanceof ProblemError)) throw thrown;
    const { line, exitCode } = explainFailure(thrown, {
      redisUrl: opened?.redisUrl,
      options: { ...OPTIONS, ...context.options },
      cures: context.cures,
    });
    process.stderr.write(`konverge: ${line}\n`);
    // Not exitCode: the client of a Redis that is away lives on for two seconds after it was told to end.
    process.exit(exitCode);
  }
}

/** Who gives an order, why, and under which key. */
export function orderOf({ by, reason, idempotencyKey }: OrderFlags): {
  readonly order: { readonly by: string; readonly reason: string };
  readonly write: { readonly idempotencyKey?: string };
} {
  return {
    order: { by: by ?? systemUser(), reason },
    write: idempotencyKey === undefined ? {} : { idempotencyKey },
  };
}

/** For commands that ask about one cluster. */
export function withClient(command: Command): Command {
  return withServer(command).option("--cluster <name>", "default: KONVERGE_CLUSTER, else default");
}

export function withServer(command: Command): Command {
  return withOutput(command).option(
    "--server <url>",
    "HTTP API to ask; default KONVERGE_SERVER, else Redis is read here",
  );
}

/** Every change is kept with who made it and why. */
export function withOrder(command: Command): Command {
  return withIdempotencyKey(command)
    .requiredOption("--reason <text>", "why; kept, and shown to all")
    .option("--by <name>", "who; default: the user of this system")
    .option("--dry-run", "only say what would be done");
}

export function withIdempotencyKey(command: Command): Command {
  return command.option(
    "--idempotency-key <key>",
    "with the same key a call happens once; default: random",
  );
}

/** What stands below the options of a group of commands. */
export function groupHelp(examples: string): string {
  return `
Examples:${examples}

With --server or KONVERGE_SERVER an HTTP API is asked, with the token in
KONVERGE_TOKEN or the file KONVERGE_TOKEN_FILE; else Redis itself, at
KONVERGE_REDIS_URL, the installation KONVERGE_PREFIX.
Exit codes: konverge --help, docs/cli.md.`;
}
