import { defined } from "@konverge/core";
import { parseArgs } from "node:util";
import type { BenchOptions, Figure } from "./measure.ts";
import { benchApi } from "./api.ts";
import { benchCache } from "./cache.ts";
import { benchClusters } from "./clusters.ts";
import { benchContention } from "./contention.ts";
import { benchController } from "./controller.ts";
import { benchGuard } from "./guard.ts";
import { benchHistory } from "./history.ts";
import { benchKeys } from "./keys.ts";
import { benchLeader } from "./leader.ts";
import { benchMemory } from "./memory.ts";
import { benchMutations } from "./mutations.ts";
import { benchOutage } from "./outage.ts";
import { benchPorted } from "./ported.ts";
import { benchQueue } from "./queue.ts";
import { benchSecrets } from "./secrets.ts";
import { benchSim } from "./sim.ts";
import { benchTenants } from "./tenants.ts";
import { benchTime } from "./time.ts";
import { benchWorkflow } from "./workflow.ts";
import { benchWorkflowPeers } from "./workflow-peers.ts";
import { benchWritePath } from "./write-path.ts";

const SUITES: Readonly<Record<string, (options: BenchOptions) => Promise<Figure[]>>> = {
  api: benchApi,
  "write-path": benchWritePath,
  cache: benchCache,
  clusters: benchClusters,
  queue: benchQueue,
  contention: benchContention,
  controller: benchController,
  guard: benchGuard,
  history: benchHistory,
  keys: benchKeys,
  leader: benchLeader,
  memory: benchMemory,
  mutations: benchMutations,
  outage: benchOutage,
  ported: benchPorted,
  secrets: benchSecrets,
  sim: benchSim,
  tenants: benchTenants,
  time: benchTime,
  workflow: benchWorkflow,
  "workflow-peers": benchWorkflowPeers,
};
const log = (line: string): void => console.error(`bench: ${line}`);

const { values, positionals } = readArguments();
const wanted = positionals.length > 0 ? positionals : Object.keys(SUITES);
const unknown = wanted.filter((name) => !Object.hasOwn(SUITES, name));
if (unknown.length > 0 || !["table", "json"].includes(values.output)) {
  exitWithUsage(
    unknown.length > 0
      ? `no suite "${unknown.join('", "')}"`
      : `-o ${values.output}: must be table or json`,
  );
}

const objects = Number(values.objects);
if (!Number.isSafeInteger(objects) || objects < 1) {
  exitWithUsage(`--objects ${values.objects}: must be an integer >= 1`);
}

const figures: Figure[] = [];
for (const name of wanted) {
  log(`${name}: running both sides in turn, medians of several rounds`);
  for (const figure of (await SUITES[name]?.({
    log,
    objects,
    long: values.long,
    ...defined({ arm: values.arm }),
  })) ?? []) {
    figures.push(figure);
    if (values.output === "json") console.log(JSON.stringify(figure));
  }
}
if (values.output === "table") {
  console.table(
    figures.map((figure) => ({
      suite: figure.suite,
      case: figure.case,
      metric: figure.metric,
      ours: `${figure.ours} ${figure.unit}`,
      peer: figure.peer === null ? "" : `${figure.peer} ${figure.unit}`,
      "peer is": figure.peerName ?? "",
      ratio: figure.ratio ?? "",
      goal: figure.goal ?? "",
      ok: figure.ok ? "yes" : "NO",
    })),
  );
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        output: { type: "string", short: "o", default: "table" },
        objects: { type: "string", default: "1000" },
        long: { type: "boolean", default: false },
        arm: { type: "string" },
      },
    });
  } catch (error) {
    return exitWithUsage(error instanceof Error ? error.message : String(error));
  }
}

function exitWithUsage(wrong: string): never {
  const suites = Object.keys(SUITES).join("|");
  log(
    `${wrong}; usage: npm run bench -- [${suites}]... [-o table|json] [--objects N] [--arm TEXT] [--long]`,
  );
  process.exit(2);
}
