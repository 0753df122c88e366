import { KonvergeError } from "@konverge/core";
import { InvalidArgumentError, Option, type Command } from "commander";
import type { WriterFlags } from "../demo/writer-process.ts";
import type { ClusterKind } from "../stage/stage.ts";
import { untilSignal } from "../until-signal.ts";

interface DemoFlags {
  readonly story: "fight" | "rollout";
  readonly cluster: ClusterKind;
  readonly kubeconfig?: string;
  readonly workers: number;
  readonly split: boolean;
  readonly exit: boolean;
  readonly output: "table" | "json";
  readonly yes: boolean;
  readonly logs?: string;
  readonly seed: number;
  readonly blindWriter: boolean;
  readonly outage: boolean;
}

/** Far more than the 20 pools of an act can keep busy; a slip of the finger must not start processes without end. */
const MAX_WORKERS = 50;

export function addDemoCommand(program: Command): void {
  program
    .command("demo")
    .description(
      "two operators and an outside writer fight over the same objects, the lazy way and the pro way; or a rollout over two clusters whose worker is killed",
    )
    .addOption(
      new Option(
        "--story <name>",
        "fight, or rollout: a durable workflow over two embedded clusters, with an approval and a kill -9 in the middle of a step",
      )
        .choices(["fight", "rollout"])
        .default("fight"),
    )
    .addOption(
      new Option("--cluster <kind>", "API server")
        .choices(["embedded", "envtest", "kubeconfig"])
        .default("embedded"),
    )
    .option("--kubeconfig <file>", "for --cluster kubeconfig; default KUBECONFIG")
    .option(
      "--workers <number>",
      `worker processes per operator, at most ${MAX_WORKERS}`,
      parseWorkers,
      2,
    )
    .option("--split", "run the controllers as two operators", false)
    .option(
      "--exit",
      "end after the story (the default when stdout is no terminal)",
      !process.stdout.isTTY,
    )
    .option("--no-exit", "stay up until Ctrl-C in any case")
    .addOption(
      new Option("-o, --output <format>", "what to print")
        .choices(["table", "json"])
        .default("table"),
    )
    .option("--logs <dir>", "keep the logs of all processes here")
    .option("--yes", "do not ask before writing to a server elsewhere", false)
    .option("--seed <number>", "seed of the load and of the outside writer", parseCount, 42)
    .option(
      "--blind-writer",
      "let the outside writer overwrite blindly: the lost-update check must then fail",
      false,
    )
    .option("--outage", "stop the API server for 20 s in the middle of act 2", false)
    .action(async (flags: DemoFlags, command: Command) => {
      if (flags.story === "rollout") refuseFightFlags(command);
      const stop = new AbortController();
      void untilSignal().then((signal) => stop.abort(new Error(signal)));
      process.exitCode = await playStory(flags, stop.signal);
      // What a second Ctrl-C listens to would hold the process.
      process.removeAllListeners("SIGINT");
      process.removeAllListeners("SIGTERM");
    });
  program
    .command("demo-writer", { hidden: true })
    .requiredOption("--namespace <name>")
    .requiredOption("--pools <names>", "", (text: string) => text.split(","))
    .requiredOption("--seed <number>", "", parseCount)
    .option("--blind", "", false)
    .action(async (flags: WriterFlags) => {
      const { runWriterProcess } = await import("../demo/writer-process.ts");
      await runWriterProcess(flags);
    });
  program
    .command("demo-control-plane", { hidden: true })
    .requiredOption("--audit-log <file>")
    .action(async ({ auditLog }: { readonly auditLog: string }) => {
      const { runControlPlane } = await import("../demo/control-plane-process.ts");
      await runControlPlane(auditLog);
    });
}

async function playStory(flags: DemoFlags, signal: AbortSignal): Promise<number> {
  const { exit, output, logs } = flags;
  if (flags.story === "rollout") {
    const { runRollout } = await import("../demo/rollout/run-rollout.ts");
    return await runRollout({ exit, output, logs, signal });
  }
  const { runDemo } = await import("../demo/run-demo.ts");
  const kubeconfig = flags.kubeconfig ?? process.env["KUBECONFIG"];
  return await runDemo({ ...flags, logs, kubeconfig, signal });
}

/** @throws KonvergeError `invalid_config` naming the flags that the rollout has no use for */
function refuseFightFlags(command: Command): void {
  const of = new Set(["story", "exit", "output", "logs"]);
  const given = command.options.filter(
    (option) =>
      !of.has(option.attributeName()) &&
      command.getOptionValueSource(option.attributeName()) === "cli",
  );
  if (given.length === 0) return;
  const names = given.map(({ long }) => long).join(", ");
  throw new KonvergeError(
    "invalid_config",
    `${names}: of --story fight only; the rollout has two embedded API servers and two workers`,
  );
}

function parseWorkers(text: string): number {
  const count = parseCount(text);
  if (count > MAX_WORKERS) {
    throw new InvalidArgumentError(
      `write at most ${MAX_WORKERS}: each is a process on this machine.`,
    );
  }
  return count;
}

function parseCount(text: string): number {
  const count = Number(text);
  if (!Number.isSafeInteger(count) || count < 1)
    throw new InvalidArgumentError("write a whole number from 1.");
  return count;
}
