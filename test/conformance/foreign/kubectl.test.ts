import { afterAll, beforeAll, expect, test } from "vitest";
import { findKubectl } from "../../../infra/kubectl/find-kubectl.js";
import { startEmbedded, startReal, type TestedServer } from "../servers.ts";
import { compareScript, type Contest } from "./compare-scripts.ts";
import { FILES } from "./kubectl-manifests.ts";
import { KUBECTL_SCRIPTS } from "./kubectl-scripts.ts";
import { makeRandomScript } from "./random-commands.ts";
import { isLongRun } from "../../support/test-run.ts";

const log = (line: string) => console.error(line);
const servers: TestedServer[] = [];
let contest: Contest | undefined;
let missing = "";

beforeAll(async () => {
  const kubectl = await findKubectl({ log, build: isLongRun });
  if ("missing" in kubectl) {
    missing = kubectl.missing;
    return;
  }
  const real = await startReal(log);
  missing = "no real API server to compare with";
  if (real === undefined) return;
  const embedded = await startEmbedded();
  servers.push(real, embedded);
  contest = { embedded, real, program: kubectl.path, files: FILES };
});
afterAll(async () => {
  for (const server of servers) await server.stop();
});

const scripts = KUBECTL_SCRIPTS.filter((script) => isLongRun || script.isLong !== true);

test.for(scripts)("kubectl $name as with kube-apiserver", async (script, { skip }) => {
  if (contest === undefined) return skip(missing);
  const { deviations } = await compareScript(contest, script);
  expect(deviations).toEqual([]);
});

// Only in the long form; a seed that a run gives is repeated.
const seed = Number(process.env["KONVERGE_TEST_SEED"] ?? 1) >>> 0;
const seeds = Array.from({ length: isLongRun ? 3 : 0 }, (_, index) => (seed + index) >>> 0);

test.for(seeds)(
  "random kubectl commands with seed %i as with kube-apiserver",
  async (one, { skip }) => {
    if (contest === undefined) return skip(missing);
    const { deviations } = await compareScript(contest, makeRandomScript(one, 40));
    expect(deviations).toEqual([]);
  },
);
