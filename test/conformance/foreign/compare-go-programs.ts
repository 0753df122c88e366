import { load } from "js-yaml";
import type { JsonObject } from "@konverge/core";
import { until } from "../../support/until.ts";
import { definitions } from "../objects.ts";
import type { TestedServer } from "../servers.ts";
import type { Comparison } from "./compare-scripts.ts";
import { findGoPrograms, GO_SCENARIOS } from "./find-go-programs.ts";
import { sendJson } from "./in-new-namespace.ts";
import { FILES } from "./kubectl-manifests.ts";
import { programOutput } from "./program-output.ts";

const parts = `${definitions}/parts.foreign.konverge.dev`;

/** Installs the definition that the programs use. */
export async function installParts(server: TestedServer): Promise<void> {
  await sendJson(server, "POST", definitions, load(FILES["parts-crd.yaml"] ?? "") as JsonObject);
  await until("Parts are served", async () => {
    const path = "/apis/foreign.konverge.dev/v1/namespaces/default/parts";
    return (await server.api.send({ method: "GET", path })).code === 200;
  });
}

export const removeParts = (server: TestedServer) => sendJson(server, "DELETE", parts);

/** Runs the scenarios whose name matches with Go programs, which are built if necessary, on both servers. */
export async function compareGoPrograms(
  servers: readonly TestedServer[],
  matches: (name: string) => boolean,
  log: (line: string) => void,
): Promise<Comparison> {
  const scenarios = GO_SCENARIOS.filter(matches);
  const [embedded, real] = servers;
  if (embedded === undefined || real === undefined || scenarios.length === 0) {
    return { commands: 0, deviations: [] };
  }
  const program = await findGoPrograms({ log, build: true });
  if ("missing" in program) {
    log(`without Go programs: ${program.missing}`);
    return { commands: 0, deviations: [] };
  }
  const deviations: string[] = [];
  for (const server of servers) await installParts(server);
  try {
    for (const name of scenarios) {
      const here = await programOutput(embedded, program.path, [name]);
      const there = await programOutput(real, program.path, [name]);
      if (here !== there) {
        deviations.push(`Go program ${name}\nembedded:\n${here}\nkube-apiserver:\n${there}`);
      } else if (!/^exit code 0$/m.test(here)) deviations.push(`Go program ${name} fails\n${here}`);
    }
  } finally {
    for (const server of servers) await removeParts(server);
  }
  return { commands: scenarios.length, deviations };
}
