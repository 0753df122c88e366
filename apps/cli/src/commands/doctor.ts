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
Checks Redis (version, eviction, persistence, memory, replicas, latency,
clock), the workers and guards, current problems such as dead-lettered keys,
and the API server of the kubeconfig. With --config, also checks what stops a
worker: kinds, CRDs, permissions, and data in Redis of another cluster; and
that controllers have a leader. With --server, the HTTP API replaces the Redis
checks. Exits with 0 if no check failed, or else with the exit code of the
first failure.`;

export function addDoctorCommand(program: Command): void {
  withClient(program.command("doctor").description("Check the installation and suggest fixes"))
    .option("--config <file>", "Configuration file of the workers")
    .addHelpText("after", HELP)
    .action((flags: DoctorFlags) =>
      runWithClient(flags, async (asking) => {
        const loaded =
          flags.config === undefined
            ? undefined
            : await loadWorkerConfig(flags.config, process.env);
        const settings = loaded?.settings ?? readSettings({ env: process.env });
        const [
          { checkKubernetes },
          { checkOtherClusters },
          { checkProvidedClusters },
          { checkRedisServer },
          { isClusterProvider, servedClusters },
        ] = await Promise.all([
          import("../doctor/check-kubernetes.ts"),
          import("../doctor/check-other-clusters.ts"),
          import("../doctor/check-provided-clusters.ts"),
          import("../doctor/check-redis.ts"),
          import("@konverge/worker"),
        ]);
        const isRemote = asking.settings.server !== undefined;
        const redis = isRemote ? [] : await checkRedisServer(settings);
        // The configuration selects the cluster of its workers.
        const cluster = flags.cluster ?? loaded?.settings.cluster ?? asking.cluster;
        const isAway = redis.some(({ level }) => level === "fail");
        const served = loaded === undefined ? [] : servedClusters(loaded.config, settings);
        const named = served.length > 1;
        const clusters = loaded?.config.clusters;
        const provider = isClusterProvider(clusters) ? clusters : undefined;
        // Without a configuration, there is one. A provider's clusters are checked below; it may have a home cluster.
        const hasOwn = provider === undefined || provider.home !== undefined;
        const unlisted = hasOwn ? [settings.cluster] : [];
        const servesSeveral = flags.cluster === undefined && (named || provider !== undefined);
        // The state of the fleet is in Redis.
        const fleet = isAway ? [] : await checkFleet({ ...asking, cluster, servesSeveral });
        const kubernetes = await Promise.all(
          (served.length === 0 ? unlisted : served).map(async (name) => {
            const checks = await checkKubernetes({
              settings: { ...settings, cluster: name },
              config: loaded?.config,
              hasRedis: !isRemote && !isAway,
            });
            return named
              ? checks.map((each) => ({ ...each, check: `${each.check} on ${name ?? ""}` }))
              : checks;
          }),
        );
        const others =
          loaded === undefined || named
            ? []
            : await checkOtherClusters({ ...settings, cluster: served[0] }, loaded.config);
        const provided =
          loaded === undefined
            ? []
            : await checkProvidedClusters({
                settings,
                config: loaded.config,
                hasRedis: !isRemote && !isAway,
              });
        report(flags, [...redis, ...fleet, ...kubernetes.flat(), ...others, ...provided]);
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
    process.stderr.write(`${failed.length} failed, ${warned.length} warnings\n`);
  }
  const [first] = failed;
  if (first !== undefined) process.exitCode = first.exitCode ?? 1;
}

/** Lines are wrapped and not cut, because they end with the suggested fix. */
function checkRows(checks: readonly Check[]): string {
  return columns(
    checks.map(({ check, level, detail }): Cell[] => [toneCell(level), check, detail]),
    { wraps: true, hasHead: false },
  );
}
