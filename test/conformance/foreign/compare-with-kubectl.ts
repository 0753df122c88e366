import { findKubectl } from "../../../infra/kubectl/find-kubectl.js";
import type { TestedServer } from "../servers.ts";
import { compareScript, type Comparison } from "./compare-scripts.ts";
import { FILES } from "./kubectl-manifests.ts";
import { KUBECTL_SCRIPTS } from "./kubectl-scripts.ts";

/** Runs the scripts whose name matches with kubectl, which is built if necessary, on both servers. */
export async function compareWithKubectl(
  servers: readonly TestedServer[],
  matches: (name: string) => boolean,
  log: (line: string) => void,
): Promise<Comparison> {
  const [embedded, real] = servers;
  if (embedded === undefined || real === undefined) return { commands: 0, deviations: [] };
  const kubectl = await findKubectl({ log, build: true });
  if ("missing" in kubectl) {
    log(`without kubectl: ${kubectl.missing}`);
    return { commands: 0, deviations: [] };
  }
  const contest = { embedded, real, program: kubectl.path, files: FILES };
  const comparisons: Comparison[] = [];
  for (const script of KUBECTL_SCRIPTS.filter(({ name }) => matches(name))) {
    comparisons.push(await compareScript(contest, script));
  }
  return {
    commands: comparisons.reduce((sum, { commands }) => sum + commands, 0),
    deviations: comparisons.flatMap(({ deviations }) => deviations),
  };
}
