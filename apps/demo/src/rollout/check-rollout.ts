import type { PlayedRollout } from "./play-rollout.ts";
import type { Check } from "./rollout-report.ts";
import { APP, NEW_IMAGE, readApp, REPLICAS } from "./rollout-app.ts";
import type { TimelineRow } from "./run-timeline.ts";
import type { TwoClusters } from "./two-clusters.ts";

/** Reads from both API servers and from the journal what must be so after the rollout. */
export async function checkRollout(
  clusters: TwoClusters,
  { run, killed }: PlayedRollout,
  timeline: readonly TimelineRow[],
): Promise<Check[]> {
  const checks: Check[] = [
    { ok: run.status === "done", what: "the run is done", found: run.error?.message ?? run.status },
  ];
  for (const { name, client, countWorkerCalls } of [clusters.east, clusters.west]) {
    const { image, available, rollouts } = await readApp(client);
    const writes = await countWorkerCalls("patch", "deployments");
    checks.push(
      {
        ok: image === NEW_IMAGE && available === REPLICAS,
        what: `${name} runs the new image`,
        found: `${APP.namespace}/${APP.name} has ${image}, ${available} of ${REPLICAS} available`,
      },
      {
        ok: rollouts === 1,
        what: `${name} was upgraded exactly once`,
        found: `the count in the object says ${rollouts}, the server's audit log ${writes} PATCH`,
      },
    );
  }
  const twice = timeline.filter(({ workers }) => workers.length > 1);
  const [first] = twice;
  const after = first === undefined ? [] : timeline.slice(timeline.indexOf(first));
  const marked = run.steps.filter(({ workerLost }) => workerLost === true);
  const approval = run.steps.find(({ name }) => name === "approve west");
  checks.push(
    {
      ok: twice.length === 1 && first?.workers[0] === killed.name,
      what: "only the step in which a worker died ran twice",
      found: twice.map(({ step, workers }) => `${step}: ${workers.join(", then ")}`).join("; "),
    },
    {
      ok: marked.length === 1 && marked[0]?.name === first?.step,
      what: "the journal says where a worker was lost",
      found: marked.map(({ name }) => name).join(", "),
    },
    {
      ok: after.length > 0 && after.every(({ workers }) => workers.at(-1) !== killed.name),
      what: "the other worker went on",
      found: `${after.length} of ${timeline.length} steps recorded by ${after[0]?.workers.at(-1)}`,
    },
    {
      ok: approval?.by === "demo",
      what: "the journal knows who approved west",
      found: approval?.by ?? "nobody",
    },
  );
  return checks;
}
