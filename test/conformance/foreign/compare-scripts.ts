import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestedServer } from "../servers.ts";
import { inNewNamespace } from "./in-new-namespace.ts";
import { KubectlClient, type Printed, type Script } from "./kubectl-client.ts";

export interface Comparison {
  readonly commands: number;
  /** For each command with another result, the command and the lines that only one server has. */
  readonly deviations: readonly string[];
}

/** The servers to compare, kubectl and the files of the scripts. */
export interface Contest {
  readonly embedded: TestedServer;
  readonly real: TestedServer;
  readonly program: string;
  readonly files: Readonly<Record<string, string>>;
}

/** Runs a script with kubectl on both servers, each time in a new namespace, and compares what it prints. */
export async function compareScript(contest: Contest, script: Script): Promise<Comparison> {
  const folder = mkdtempSync(join(tmpdir(), "konverge-kubectl-"));
  try {
    const [here, there] = await Promise.all([
      printedBy(contest.embedded, contest, { script, folder: join(folder, "embedded") }),
      printedBy(contest.real, contest, { script, folder: join(folder, "real") }),
    ]);
    const deviations = here.flatMap((one, index) => describeDeviation(one, there[index]));
    return { commands: here.length, deviations };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function describeDeviation(embedded: Printed, real: Printed | undefined): string[] {
  const here = linesOf(embedded);
  const there = real === undefined ? [] : linesOf(real);
  if (here.join("\n") === there.join("\n")) return [];
  const lines = [...linesOnly(here, there, "embedded"), ...linesOnly(there, here, "real")];
  return [[`kubectl ${embedded.command}`, ...lines].join("\n")];
}

/** The lines that others do not have as often. */
function linesOnly(lines: readonly string[], others: readonly string[], name: string): string[] {
  const left = [...others];
  return lines.flatMap((line) => {
    const index = left.indexOf(line);
    if (index === -1) return [`  ${name}: ${line}`];
    left.splice(index, 1);
    return [];
  });
}

const linesOf = ({ code, out, err }: Printed): string[] =>
  `${out}\n${err}\nexit code ${code}`.split("\n");

async function printedBy(
  server: TestedServer,
  { program, files }: Contest,
  { script, folder }: { readonly script: Script; readonly folder: string },
): Promise<readonly Printed[]> {
  return await inNewNamespace(server, async (namespace) => {
    const client = new KubectlClient(server, { program, folder, namespace, files });
    return await client.run(script.commands);
  });
}
