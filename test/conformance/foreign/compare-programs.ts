import { until } from "../../support/until.ts";
import { definitions } from "../objects.ts";
import type { TestedServer } from "../servers.ts";
import type { Comparison } from "./compare-scripts.ts";
import type { Definition, ForeignPrograms } from "./foreign-programs.ts";
import { sendJson } from "./in-new-namespace.ts";
import { programOutput } from "./program-output.ts";

/** Installs the CRDs of the programs, and waits until they are served. */
export async function installCrds(server: TestedServer, crds: readonly Definition[]) {
  for (const crd of crds) {
    await sendJson(server, "POST", definitions, crd);
    const path = pathOf(crd);
    await until(`${path} is served`, async () => {
      return (await server.api.send({ method: "GET", path })).code === 200;
    });
  }
}

export async function removeCrds(server: TestedServer, crds: readonly Definition[]): Promise<void> {
  for (const crd of crds) {
    await sendJson(server, "DELETE", `${definitions}/${crd.metadata.name}`);
  }
}

function pathOf({ spec }: Definition): string {
  return `/apis/${spec.group}/${spec.versions[0]?.name}/namespaces/default/${spec.names.plural}`;
}

/** Runs the scenarios whose name matches on both servers. The programs are built or installed if necessary. */
export async function comparePrograms(
  [embedded, real]: readonly TestedServer[],
  programs: ForeignPrograms,
  { matches, log }: { matches: (name: string) => boolean; log: (line: string) => void },
): Promise<Comparison> {
  const scenarios = Object.keys(programs.scenarios).filter(matches);
  const none = { commands: 0, deviations: [] };
  if (embedded === undefined || real === undefined || scenarios.length === 0) return none;
  const found = await programs.find({ log, build: true });
  if ("missing" in found) {
    log(`without ${programs.name}: ${found.missing}`);
    return none;
  }
  const deviations: string[] = [];
  for (const server of [embedded, real]) await installCrds(server, programs.crds);
  try {
    for (const scenario of scenarios) {
      const command = [...found.command, scenario];
      const here = await programOutput(embedded, command);
      const there = await programOutput(real, command);
      const name = `${programs.name}, ${scenario}`;
      if (here !== there) deviations.push(`${name}\nembedded:\n${here}\nkube-apiserver:\n${there}`);
      else if (!/^exit code 0$/m.test(here)) deviations.push(`${name} fails\n${here}`);
    }
  } finally {
    for (const server of [embedded, real]) await removeCrds(server, programs.crds);
  }
  return { commands: scenarios.length, deviations };
}
