import { fork } from "node:child_process";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { ensureError, isKonvergeError, KonvergeError } from "@konverge/core";
import type { FaultKind } from "../testing/simulate/fault.ts";
import { simulate, type SimulationReport } from "../testing/simulate/simulate.ts";
import type { Simulation } from "../testing/simulate/scenario.ts";

export interface SimulationSelection {
  readonly seeds: number;
  readonly firstSeed: number;
  readonly faults?: readonly FaultKind[];
  /** Number of processes. */
  readonly parallel: number;
}

/** Runs the simulation of a file. With several processes, each runs a part of the seeds. */
export async function runSimulation(
  file: string,
  { parallel, ...selection }: SimulationSelection,
): Promise<SimulationReport> {
  const parts = partsOf(selection, parallel);
  if (parts.length <= 1) {
    const { config, scenario } = await loadSimulation(file);
    return await simulate(config, scenario, selection);
  }
  return await inProcesses(file, parts);
}

type Part = Omit<SimulationSelection, "parallel">;

/** Splits the seeds into ranges of similar length, in order. */
function partsOf({ seeds, firstSeed, ...rest }: Part, count: number): Part[] {
  const start = (index: number) => Math.floor((seeds * index) / count);
  return Array.from({ length: count }, (_, index) => ({
    ...rest,
    firstSeed: firstSeed + start(index),
    seeds: start(index + 1) - start(index),
  })).filter((part) => part.seeds > 0);
}

/** The report has the failure with the lowest seed, as that of one process. */
async function inProcesses(file: string, parts: readonly Part[]): Promise<SimulationReport> {
  const children = parts.map((part) => startPart(file, part));
  const stopAll = () => children.forEach(({ stop }) => stop());
  process.once("exit", stopAll);
  try {
    const reports: SimulationReport[] = [];
    for (const { report } of children) {
      const part = await report;
      reports.push(part);
      // Later parts can only have failures with higher seeds.
      if (part.failure !== undefined) break;
    }
    const sum = (count: (report: SimulationReport) => number) =>
      reports.reduce((total, report) => total + count(report), 0);
    return {
      runs: sum(({ runs }) => runs),
      attempts: sum(({ attempts }) => attempts),
      calls: sum(({ calls }) => calls),
      failure: reports.at(-1)?.failure,
    };
  } finally {
    stopAll();
    process.off("exit", stopAll);
  }
}

/** Starts this command in another process, for a part of the seeds. */
function startPart(
  file: string,
  { seeds, firstSeed, faults = [] }: Part,
): { readonly report: Promise<SimulationReport>; readonly stop: () => void } {
  const kinds = faults.flatMap((kind) => ["--fault", kind]);
  const numbers = ["--seeds", seeds, "--first-seed", firstSeed, "--parallel", 1].map(String);
  const child = fork(
    process.argv[1] ?? "",
    ["simulate", file, ...numbers, ...kinds, "--output", "json"],
    { stdio: ["ignore", "pipe", "pipe", "ipc"] },
  );
  let [output, errors] = ["", ""];
  child.stdout?.setEncoding("utf8").on("data", (text: string) => void (output += text));
  child.stderr?.setEncoding("utf8").on("data", (text: string) => void (errors += text));
  const report = new Promise<SimulationReport>((done, fail) => {
    child.once("error", fail);
    child.once("close", (code, signal) => {
      if (output.trimEnd().endsWith("}")) return done(JSON.parse(output) as SimulationReport);
      const end = signal ?? `exit code ${code}`;
      const detail = `the process of seeds ${firstSeed} to ${firstSeed + seeds - 1} ended with ${end}: ${errors.trim()}`;
      fail(new KonvergeError(code === 2 ? "invalid_config" : "internal", detail));
    });
  });
  // The first failed part is reported.
  report.catch(() => undefined);
  return { report, stop: () => void child.kill() };
}

/** Imports a file with a simulation. @throws KonvergeError `invalid_config` */
async function loadSimulation(file: string): Promise<Simulation> {
  let loaded: { readonly default?: unknown };
  try {
    loaded = (await import(pathToFileURL(resolve(file)).href)) as { readonly default?: unknown };
  } catch (error) {
    if (isKonvergeError(error)) throw error;
    const detail = `${file} cannot be loaded: ${ensureError(error).message}`;
    throw new KonvergeError("invalid_config", detail, { cause: error });
  }
  const simulation = loaded.default as Partial<Simulation> | undefined;
  if (simulation?.config === undefined || simulation.scenario === undefined) {
    throw new KonvergeError(
      "invalid_config",
      `${file} has no simulation as default export; write \`export default { config, scenario } satisfies Simulation\``,
    );
  }
  return simulation as Simulation;
}
