import { parseArgs } from "node:util";
import type { BenchOptions, Figure } from "./measure.ts";

type Suite = (options: BenchOptions) => Promise<Figure[]>;

/** Each loads its peers only when it runs. */
const SUITES: Readonly<Record<string, () => Promise<Suite>>> = {
  api: async () => (await import("./api.ts")).benchApi,
  "write-path": async () => (await import("./write-path.ts")).benchWritePath,
  cache: async () => (await import("./cache.ts")).benchCache,
  clusters: async () => (await import("./clusters.ts")).benchClusters,
  queue: async () => (await import("./queue.ts")).benchQueue,
  contention: async () => (await import("./contention.ts")).benchContention,
  controller: async () => (await import("./controller.ts")).benchController,
  guard: async () => (await import("./guard.ts")).benchGuard,
  history: async () => (await import("./history.ts")).benchHistory,
  idle: async () => (await import("./idle.ts")).benchIdle,
  keys: async () => (await import("./keys.ts")).benchKeys,
  leader: async () => (await import("./leader.ts")).benchLeader,
  memory: async () => (await import("./memory.ts")).benchMemory,
  mutations: async () => (await import("./mutations.ts")).benchMutations,
  outage: async () => (await import("./outage.ts")).benchOutage,
  plan: async () => (await import("./plan.ts")).benchPlan,
  ported: async () => (await import("./ported.ts")).benchPorted,
  secrets: async () => (await import("./secrets.ts")).benchSecrets,
  sim: async () => (await import("./sim.ts")).benchSim,
  tenants: async () => (await import("./tenants.ts")).benchTenants,
  time: async () => (await import("./time.ts")).benchTime,
  workflow: async () => (await import("./workflow.ts")).benchWorkflow,
  "workflow-peers": async () => (await import("./workflow-peers.ts")).benchWorkflowPeers,
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
  const run = await SUITES[name]?.();
  const options = { log, objects, long: values.long, arms: values.arm };
  for (const figure of (await run?.(options)) ?? []) {
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
        arm: { type: "string", multiple: true, default: [] },
      },
    });
  } catch (error) {
    return exitWithUsage(error instanceof Error ? error.message : String(error));
  }
}

function exitWithUsage(wrong: string): never {
  const suites = Object.keys(SUITES).join("|");
  log(
    `${wrong}; usage: npm run bench -- [${suites}]... [-o table|json] [--objects N] [--arm TEXT]... [--long]`,
  );
  process.exit(2);
}
