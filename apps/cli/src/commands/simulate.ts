import { availableParallelism } from "node:os";
import { defined } from "@konverge/core";
import { Option, type Command } from "commander";
import { parseCount } from "../ask/parse-count.ts";
import { FAULT_KINDS, type FaultKind } from "../testing/simulate/fault.ts";
import type { SimulationReport } from "../testing/simulate/simulate.ts";
import { print, withOutput, type Output } from "../text/output.ts";

interface SimulateFlags {
  readonly output: Output;
  readonly seeds: number;
  readonly firstSeed: number;
  readonly fault?: readonly FaultKind[];
  readonly parallel: number;
}

const HELP = `
The default export of the file is { config, scenario }, as in docs/simulate.md.
Exit code 1: a run failed; its story is printed.

Examples:
  konverge simulate pool.simulation.ts --seeds 10000
  konverge simulate pool.simulation.ts --first-seed 4711 --seeds 1`;

export function addSimulateCommand(program: Command): void {
  withOutput(
    program
      .command("simulate")
      .description("Run a simulation with many seeds, on all cores")
      .argument("<file>", "Module with a configuration and a scenario"),
  )
    .option("--seeds <count>", "Number of runs with faults", parseCount, 200)
    .option("--first-seed <seed>", "First seed", parseCount, 1)
    .addOption(
      new Option("--fault <kind...>", "Only faults of these kinds (default: all)").choices(
        FAULT_KINDS,
      ),
    )
    .option(
      "--parallel <count>",
      "Number of processes (default: one per core)",
      parseCount,
      availableParallelism(),
    )
    .addHelpText("after", HELP)
    .action(async (file: string, { output, fault, ...flags }: SimulateFlags) => {
      const { runSimulation } = await import("../simulation/run-simulation.ts");
      const report = await runSimulation(file, { ...flags, ...defined({ faults: fault }) });
      print(output, {
        document: report,
        names: report.failure === undefined ? [] : [String(report.failure.seed)],
        table: () => reportText(report),
      });
      if (report.failure !== undefined) process.exitCode = 1;
    });
}

function reportText({ runs, attempts, calls, failure }: SimulationReport): string {
  const counts = `${runs} runs with faults, ${attempts} attempts, ${calls} API calls`;
  return failure === undefined ? `no failure in ${counts}` : `${failure.story}\n\n${counts}`;
}
