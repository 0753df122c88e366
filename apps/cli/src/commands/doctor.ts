import { readSettings } from "@konverge/contracts";
import type { Command } from "commander";
import { columns, type Cell } from "../text/columns.ts";
import type { Check } from "../doctor/check.ts";
import { checkFleet } from "../doctor/check-fleet.ts";
import { loadWorkerConfig } from "../config/load-config.ts";
import { print } from "../text/output.ts";
import { runWithClient, withClient, type ClientFlags } from "../ask/run-with-client.ts";
import { toneCell } from "../text/tone.ts";

interface DoctorFlags extends ClientFlags {
  readonly config?: string;
}

const HELP = `
Looks at Redis (version, eviction, persistence, clock), at the workers and
guards, and at the API server of the kubeconfig; with --config also whether it
serves the controllers' kinds and allows what they need. With --server the HTTP
API stands in for Redis. Ends with 0 when nothing is wrong, else with the exit
code of the first thing that is.`;

export function addDoctorCommand(program: Command): void {
  withClient(program.command("doctor").description("look for what is wrong, and say the cure"))
    .option("--config <file>", "configuration file of the workers")
    .addHelpText("after", HELP)
    .action((flags: DoctorFlags) =>
      runWithClient(flags, async (asking) => {
        const loaded =
          flags.config === undefined
            ? undefined
            : await loadWorkerConfig(flags.config, process.env);
        const settings = loaded?.settings ?? readSettings({ env: process.env });
        const [{ checkKubernetes }, { checkOtherClusters }, { checkRedisServer }] =
          await Promise.all([
            import("../doctor/check-kubernetes.ts"),
            import("../doctor/check-other-clusters.ts"),
            import("../doctor/check-redis.ts"),
          ]);
        const isRemote = asking.settings.server !== undefined;
        const redis = isRemote ? [] : await checkRedisServer(settings);
        // The configuration says which cluster its workers serve.
        const cluster = flags.cluster ?? loaded?.settings.cluster ?? asking.cluster;
        const isAway = redis.some(({ level }) => level === "fail");
        // Without Redis there is nobody to ask.
        const fleet = isAway ? [] : await checkFleet({ ...asking, cluster });
        const kubernetes = await checkKubernetes(settings, loaded?.config);
        const others =
          loaded === undefined ? [] : await checkOtherClusters(settings, loaded.config);
        report(flags, [...redis, ...fleet, ...kubernetes, ...others]);
      }),
    );
}

function report({ output }: ClientFlags, checks: readonly Check[]): void {
  const failed = checks.filter(({ level }) => level === "fail");
  const warned = checks.filter(({ level }) => level === "warn");
  print(output, {
    document: { items: checks },
    items: checks,
    names: [...failed, ...warned].map(({ check }) => check),
    table: () => checkRows(checks),
  });
  if (output === "table") {
    process.stderr.write(`${failed.length} failed, ${warned.length} to look at\n`);
  }
  const [first] = failed;
  if (first !== undefined) process.exitCode = first.exitCode ?? 1;
}

/** Nothing is cut: the cure is at the end of the line. */
function checkRows(checks: readonly Check[]): string {
  return columns(
    checks.map(({ check, level, detail }): Cell[] => [toneCell(level), check, detail]),
    { width: Infinity, hasHead: false },
  );
}
