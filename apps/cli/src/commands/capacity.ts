import { Option, type Command } from "commander";
import { runWithAccess } from "../ask/run-with-access.ts";
import { readCapacity, type CapacityReport } from "../capacity/read-capacity.ts";
import { columns, fields } from "../text/columns.ts";
import { COMMON_OPTIONS, print, withOutput, type Output } from "../text/output.ts";

interface CapacityFlags {
  readonly output: Output;
  readonly cluster?: string;
}

const HELP = `
Counts keys and runs, and estimates their memory in Redis with the formula of
docs/production.md. For records, the estimate assumes their limit
(KONVERGE_HISTORY_LIMIT_MIB). Runs with large values need more than the estimate.
Needs access to Redis (KONVERGE_REDIS_URL, KONVERGE_PREFIX).

Examples:
  konverge capacity
  konverge capacity -o json`;

/** Share of maxmemory above which Redis should get more. */
const TIGHT = 0.8;

export function addCapacityCommand(program: Command): void {
  withOutput(
    program
      .command("capacity")
      .description("Estimate Redis memory and API calls of the live installation"),
  )
    .addOption(
      new Option("--cluster <name>", "Cluster name (default: all)").helpGroup(COMMON_OPTIONS),
    )
    .addHelpText("after", HELP)
    .action(({ output, cluster }: CapacityFlags) =>
      runWithAccess(async (access, settings) => {
        const names = cluster === undefined ? await access.clusters() : [cluster];
        const report = await readCapacity(access, settings, names);
        print(output, {
          document: report,
          items: report.clusters,
          names: names,
          table: () => capacityText(report),
          empty: "no clusters; start a worker with konverge worker --config <file>",
        });
      }),
    );
}

function capacityText({ clusters, redis, estimatedBytes }: CapacityReport): string {
  const rows = clusters.map(
    ({ cluster, keys, waiting, liveRuns, endedRuns, totalBytes, calls }) => [
      cluster,
      String(keys),
      String(waiting),
      String(liveRuns),
      String(endedRuns),
      mib(totalBytes),
      calls === undefined ? "-" : `${Math.round(calls.rate)} of ${calls.limit} calls/s`,
    ],
  );
  const { usedBytes, maxBytes } = redis;
  const highest = Math.max(usedBytes ?? 0, estimatedBytes);
  const advice =
    maxBytes === null
      ? "the server does not report maxmemory; check the limit of its plan"
      : maxBytes === 0
        ? `set maxmemory to at least ${mib(highest / TIGHT)}`
        : highest > TIGHT * maxBytes
          ? `raise maxmemory to at least ${mib(highest / TIGHT)}`
          : "sufficient";
  return [
    columns([
      ["CLUSTER", "KEYS", "WAITING", "LIVE RUNS", "ENDED RUNS", "ESTIMATE", "RATE"],
      ...rows,
    ]),
    fields([
      ["estimate", mib(estimatedBytes)],
      ["redis used", usedBytes === null ? "unknown" : mib(usedBytes)],
      ["maxmemory", maxBytes === null ? "unknown" : maxBytes === 0 ? "no limit" : mib(maxBytes)],
      ["advice", advice],
    ]),
  ].join("\n\n");
}

function mib(bytes: number): string {
  return `${(bytes / 1_048_576).toFixed(1)} MiB`;
}
