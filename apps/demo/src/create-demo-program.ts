import { KonvergeError } from "@konverge/core";
import { Command, InvalidArgumentError, Option } from "commander";
import { ACTS, type ActName } from "./acts/act-names.ts";
import type { ClusterKind } from "./acts/run-demo.ts";
import { stopSignal } from "./stage/stop-signal.ts";
import type { WriterFlags } from "./writer-process.ts";

interface DemoFlags {
  readonly scenario: (typeof SCENARIOS)[number];
  readonly story?: (typeof SCENARIOS)[number];
  readonly cluster: ClusterKind;
  readonly acts: readonly ActName[];
  readonly kubeconfig?: string;
  readonly workers: number;
  readonly split?: true;
  readonly exit?: boolean;
  readonly output: "table" | "json";
  readonly yes?: true;
  readonly logs?: string;
  readonly seed: number;
  readonly blindWriter?: true;
  readonly outage?: boolean;
  readonly objects?: number;
  readonly reduced?: true;
  readonly screenshots?: string;
  readonly docImages?: string;
}

const SCENARIOS = ["contention", "rollout", "incident", "mutations", "plan"] as const;
/** The options of each scenario, besides those of all. */
const SHARED = ["scenario", "story", "exit", "keep", "output", "logs"];
const INCIDENT = ["objects", "reduced", "outage", "screenshots", "docImages"];
const INCIDENT_OBJECTS = 10_000;
const PLANNED_OBJECTS = 200;
const USAGE = 2;
/** More workers than the 20 pools of an act can use. Each worker is a process on this machine. */
const MAX_WORKERS = 50;

/**
 * The demo's command line, ready to parse. Hidden commands are the demo's own processes.
 * @param name by which users call it
 */
export function createDemoProgram(name: string): Command {
  const program = new Command(name)
    .usage("[options]")
    .description(
      "Compare retry strategies under contention, follow a rollout, play an incident, apply mutations, or plan a new version",
    )
    .enablePositionalOptions()
    .exitOverride((error) => {
      process.exit(error.exitCode === 0 ? 0 : USAGE);
    });
  addDemoOptions(program).action(async ({ story, ...given }: DemoFlags, command: Command) => {
    const flags = { ...given, scenario: story ?? given.scenario };
    rejectOtherFlags(flags.scenario, command);
    const signal = stopSignal();
    process.exitCode = await play(flags, signal);
    // The listeners for a second Ctrl-C would keep the process alive.
    process.removeAllListeners("SIGINT");
    process.removeAllListeners("SIGTERM");
  });
  addProcesses(program);
  return program;
}

function addDemoOptions(program: Command): Command {
  return program
    .addOption(
      new Option("--scenario <name>", "Scenario to play").choices(SCENARIOS).default("contention"),
    )
    .addOption(new Option("--story <name>", "The same as --scenario").choices(SCENARIOS))
    .addOption(
      new Option("--cluster <kind>", "API server")
        .choices(["embedded", "envtest", "kubeconfig"])
        .default("embedded"),
    )
    .option(
      "--acts <names>",
      `Acts to play, in this order (default: ${ACTS.join(",")})`,
      parseActs,
      [...ACTS],
    )
    .option("--kubeconfig <file>", "Kubeconfig for --cluster kubeconfig (default: KUBECONFIG)")
    .option(
      "--workers <number>",
      `Worker processes per operator, at most ${MAX_WORKERS}`,
      parseWorkers,
      2,
    )
    .option("--split", "Run the controllers as two operators")
    .option("--exit", "Exit after the demo (default if stdout is not a terminal)")
    .option("--no-exit", "Keep running until Ctrl-C")
    .addOption(new Option("--keep", "The same as --no-exit").implies({ exit: false }))
    .addOption(
      new Option("-o, --output <format>", "Output format")
        .choices(["table", "json"])
        .default("table"),
    )
    .option("--logs <dir>", "Directory for the logs of all processes")
    .option("--yes", "Skip the confirmation before writing to a remote cluster")
    .option("--seed <number>", "Seed of the load and of the outside writer", parseCount, 42)
    .option(
      "--blind-writer",
      "Let the outside writer overwrite blindly; the lost-update check must then fail",
    )
    .option("--outage", "Freeze the API server for 20 s during the konverge act")
    .option("--no-outage", "incident: let the API server answer to the end")
    .option(
      "--objects <number>",
      `incident: objects without a problem (default: ${INCIDENT_OBJECTS}); plan: planned objects (default: ${PLANNED_OBJECTS})`,
      parseCount,
    )
    .option("--reduced", "incident: the same causes with few objects and runs")
    .option("--screenshots <dir>", "incident: take pictures of every view")
    .option("--doc-images <dir>", "incident: take the pictures of the docs");
}

function addProcesses(program: Command): void {
  program
    .command("outside-writer", { hidden: true })
    .requiredOption("--namespace <name>")
    .requiredOption("--pools <names>", "", (text: string) => text.split(","))
    .requiredOption("--seed <number>", "", parseCount)
    .option("--blind", "", false)
    .action(async (flags: WriterFlags) => {
      const { runWriterProcess } = await import("./writer-process.ts");
      await runWriterProcess(flags);
    });
  program
    .command("naive-controllers", { hidden: true })
    .requiredOption("--namespace <name>")
    .action(async ({ namespace }: { readonly namespace: string }) => {
      const { runNaiveProcess } = await import("./naive/naive-process.ts");
      await runNaiveProcess(namespace);
    });
  program
    .command("control-plane", { hidden: true })
    .requiredOption("--audit-log <file>")
    .action(async ({ auditLog }: { readonly auditLog: string }) => {
      const { runControlPlane } = await import("./control-plane-process.ts");
      await runControlPlane(auditLog);
    });
}

async function play(flags: DemoFlags, signal: AbortSignal): Promise<number> {
  const { exit = !process.stdout.isTTY, output, logs } = flags;
  if (flags.scenario === "rollout") {
    const { runRollout } = await import("./rollout/run-rollout.ts");
    return await runRollout({ exit, output, logs, signal });
  }
  if (flags.scenario === "mutations") {
    const { runMutations } = await import("./mutations/run-mutations.ts");
    return await runMutations({ exit, output, logs, signal });
  }
  if (flags.scenario === "plan") {
    const { runPlanDemo } = await import("./plan/run-plan.ts");
    const { cluster, objects = PLANNED_OBJECTS } = flags;
    return await runPlanDemo({ cluster, objects, exit, output, logs, signal });
  }
  if (flags.scenario === "incident") {
    const { runIncident } = await import("./incident/run-incident.ts");
    const { reduced = false, outage = true, screenshots, docImages } = flags;
    return await runIncident({
      ...flags,
      objects: flags.objects ?? INCIDENT_OBJECTS,
      exit,
      logs,
      reduced,
      outage,
      screenshots,
      docImages,
      signal,
    });
  }
  const { runDemo } = await import("./acts/run-demo.ts");
  const kubeconfig = flags.kubeconfig ?? process.env["KUBECONFIG"];
  const { split = false, yes = false, blindWriter = false, outage = false } = flags;
  const switches = { split, yes, blindWriter, outage, exit };
  return await runDemo({ ...flags, ...switches, logs, kubeconfig, signal });
}

/** @throws KonvergeError `invalid_config` naming the options that the scenario does not have */
function rejectOtherFlags(scenario: DemoFlags["scenario"], command: Command): void {
  const given = command.options.filter((option) => {
    const name = option.attributeName();
    // Both forms of a switch have the same name and source.
    if (option.negate || SHARED.includes(name) || command.getOptionValueSource(name) !== "cli")
      return false;
    if (scenario === "incident") return !INCIDENT.includes(name);
    if (scenario === "plan") return name !== "cluster" && name !== "objects";
    return (
      scenario === "rollout" ||
      scenario === "mutations" ||
      (INCIDENT.includes(name) && name !== "outage")
    );
  });
  if (given.length === 0) return;
  const names = given.map(({ long }) => long).join(", ");
  throw new KonvergeError(
    "invalid_config",
    `${names}: not an option of --scenario ${scenario}; see --help`,
  );
}

function parseWorkers(text: string): number {
  const count = parseCount(text);
  if (count > MAX_WORKERS) throw new InvalidArgumentError(`Must be at most ${MAX_WORKERS}.`);
  return count;
}

function parseActs(text: string): ActName[] {
  const names = text.split(",");
  return names.map((name, index) => {
    const act = ACTS.find((known) => known === name);
    if (act === undefined || names.indexOf(name) !== index) {
      throw new InvalidArgumentError(`Must be different names of ${ACTS.join(", ")}.`);
    }
    return act;
  });
}

function parseCount(text: string): number {
  const count = Number(text);
  if (!Number.isSafeInteger(count) || count < 1) {
    throw new InvalidArgumentError("Must be an integer >= 1.");
  }
  return count;
}
