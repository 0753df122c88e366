import { createQueueDesk, openQueueAccess, type QueueDesk } from "@konverge/api";
import { readSettings, type Settings } from "@konverge/contracts";
import { isKonvergeError, KonvergeError } from "@konverge/core";
import { Option, type Command } from "commander";
import { explainFailure } from "./explain-failure.ts";

export interface ShowFlags {
  readonly output: "table" | "json";
  readonly cluster?: string;
}
export interface OrderFlags extends ShowFlags {
  readonly by?: string;
  readonly reason: string;
}

/** The fields of queries and orders, as they are typed here. */
const OPTIONS: Readonly<Record<string, string>> = {
  "/by": "--by",
  "/reason": "--reason",
  "/cluster": "--cluster",
  "/controller": "<controller>",
  "/namespace": "--namespace",
  "/name": "--name",
  "/contains": "--contains",
  "/phase": "--phase",
  "/limit": "--limit",
  "/cursor": "--cursor",
};

/**
 * Gives people access to the queues, in Redis alone: no API server and no HTTP API is needed. What went wrong is one line;
 * what nobody foresaw stays an error.
 */
export async function runAtDesk(
  work: (desk: QueueDesk, settings: Settings) => Promise<void>,
): Promise<void> {
  let redisUrl: string | undefined;
  try {
    const settings = readSettings({ env: process.env });
    ({ redisUrl } = settings);
    // What happens to the connection is told by the call that needed it.
    const onError = () => undefined;
    const access = openQueueAccess({ redisUrl, prefix: settings.prefix, onError });
    try {
      await work(createQueueDesk(access), settings);
    } finally {
      await access.close();
    }
  } catch (thrown) {
    if (!isKonvergeError(thrown)) throw thrown;
    const { line, exitCode } = explainFailure(thrown, { redisUrl, options: OPTIONS });
    process.stderr.write(`konverge: ${line}\n`);
    // Not exitCode: the client of a Redis that is away lives on for two seconds after it was told to end.
    process.exit(exitCode);
  }
}

/** As much of a zod schema as is needed here. */
interface Checks<Typed> {
  safeParse(
    typed: unknown,
  ):
    | { readonly success: true; readonly data: Typed }
    | { readonly success: false; readonly error: { readonly issues: readonly Issue[] } };
}
interface Issue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** What was typed, checked as the HTTP API checks it. @throws KonvergeError `invalid_request` */
export function checkTyped<Typed>(schema: Checks<Typed>, typed: unknown): Typed {
  const parsed = schema.safeParse(typed);
  if (parsed.success) return parsed.data;
  throw new KonvergeError("invalid_request", "an option is not valid", {
    issues: parsed.error.issues.map(({ path, message }) => ({
      pointer: path.map((part) => `/${String(part)}`).join(""),
      detail: message,
    })),
  });
}

export function withOutput(command: Command): Command {
  return command
    .addOption(
      new Option("-o, --output <format>", "what to print")
        .choices(["table", "json"])
        .default("table"),
    )
    .option("--cluster <name>", "default: KONVERGE_CLUSTER, else default");
}

export function withOrder(command: Command): Command {
  return withOutput(command)
    .requiredOption("--reason <text>", "why; kept, and shown to all")
    .option("--by <name>", "who; default: the user of this system");
}

export function withFilter(command: Command): Command {
  return withOutput(command)
    .option("--controller <name>", "default: all")
    .option("-n, --namespace <name>", "_ for cluster-scoped objects")
    .option("--name <part>", "any part of the object's name")
    .option("--limit <n>", "keys per page, up to 1000", "100")
    .option("--cursor <key>", "go on behind this key");
}

export function print(output: ShowFlags["output"], document: unknown, text: string): void {
  process.stdout.write(`${output === "json" ? JSON.stringify(document, null, 2) : text}\n`);
}
