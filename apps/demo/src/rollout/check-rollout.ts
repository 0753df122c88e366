import type { PlayedRollout } from "./play-rollout.ts";
import type { Check } from "./rollout-report.ts";
import { NEW_IMAGE, readApp, REPLICAS } from "./rollout-app.ts";
import type { TimelineRow } from "./run-timeline.ts";
import type { TwoClusters } from "./two-clusters.ts";

/** Checks the result of the rollout on both API servers and in the journal. */
export async function checkRollout(
  clusters: TwoClusters,
  { run, killed }: PlayedRollout,
  timeline: readonly TimelineRow[],
): Promise<Check[]> {
  const checks: Check[] = [
    {
      ok: run.status === "done",
      what: "the run succeeded",
      found: run.error?.message ?? run.status,
    },
  ];
  for (const { name, client, countWorkerCalls } of [clusters.east, clusters.west]) {
    const { image, available, rollouts } = await readApp(client);
    const writes = await countWorkerCalls("patch", "deployments");
    checks.push(
      {
        ok: image === NEW_IMAGE && available === REPLICAS,
        what: `${name} runs the new image`,
        found: `${image}, ${available} of ${REPLICAS} available`,
      },
      {
        ok: rollouts === 1,
        what: `${name} was upgraded exactly once`,
        found: `${rollouts} by the object's count, ${writes} PATCH in the audit log`,
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
      what: "only the interrupted step ran twice",
      found: twice.map(({ step, workers }) => `${step}: ${workers.join(", then ")}`).join("; "),
    },
    {
      ok: marked.length === 1 && marked[0]?.name === first?.step,
      what: "the journal marks the step of the lost worker",
      found: marked.map(({ name }) => name).join(", "),
    },
    {
      ok: after.length > 0 && after.every(({ workers }) => workers.at(-1) !== killed.name),
      what: "the other worker resumed",
      found: `${after.length} of ${timeline.length} steps by ${after[0]?.workers.at(-1)}`,
    },
    {
      ok: approval?.by === "demo",
      what: "the journal names the approver of west",
      found: approval?.by ?? "none",
    },
  );
  return checks;
}
