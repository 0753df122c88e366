import { isAbsolute, relative, sep } from "node:path";
import { readSettings } from "@konverge/contracts";
import { invalidConfig, type ErrorIssue } from "@konverge/core";
import { Option, type Command } from "commander";
import { dump } from "js-yaml";
import { loadConfig } from "../config/load-config.ts";
import { alertGroups, RUNBOOKS } from "../manifests/alert-rules.ts";
import type { ManifestsOptions } from "../manifests/manifests-options.ts";

interface ManifestsFlags {
  readonly config: string;
  readonly image: string;
  readonly configInImage?: string;
  readonly namespace: string;
  readonly namespaces?: string;
  readonly name: string;
  readonly replicas: string;
  readonly watchReplicas?: string;
  readonly redisSecret: string;
  readonly apiSecret?: string;
  readonly runbooks: string;
  readonly output: "yaml" | "json" | "values" | "alerts" | "grafana" | "acl";
}

export function addManifestsCommand(program: Command): void {
  program
    .command("manifests")
    .description("Print manifests for kubectl apply --server-side")
    .requiredOption("--config <file>", "Configuration file (required)")
    .requiredOption("--image <image>", "Image whose entry point is konverge (required)")
    .option(
      "--config-in-image <path>",
      "Configuration file in the image (default: --config, relative to the working directory)",
    )
    .option("--namespace <name>", "Namespace of the workers", "konverge")
    .option(
      "--namespaces <names>",
      "Namespaces to watch, separated by commas; prints Roles instead of a ClusterRole (default: those of the configuration)",
    )
    .option("--name <name>", "Name of the ServiceAccount and prefix of the Deployments", "konverge")
    .option("--replicas <n>", "Number of worker Pods", "2")
    .option("--watch-replicas <n>", "Number of watch-only Pods (others then only work)")
    .option("--redis-secret <name>", "Secret with the Redis URL in its key url", "konverge-redis")
    .option("--api-secret <name>", "Secret with an API token in its key token; adds the HTTP API")
    .option("--runbooks <url>", "Address of the folder with the runbooks, for -o alerts", RUNBOOKS)
    .addOption(
      new Option(
        "-o, --output <format>",
        "Output format; values for the Helm chart, alerts for Prometheus, grafana for its dashboard, acl for redis-cli",
      )
        .choices(["yaml", "json", "values", "alerts", "grafana", "acl"])
        .default("yaml"),
    )
    .action(async (flags: ManifestsFlags) => {
      checkFlags(flags);
      const config = await loadConfig(flags.config);
      const options: ManifestsOptions = {
        config,
        settings: readSettings({ file: config.settings, env: {} }),
        installation: { name: flags.name, namespace: flags.namespace, image: flags.image },
        configInImage: flags.configInImage ?? pathInImage(flags.config),
        namespaces: flags.namespaces?.split(","),
        replicas: Number(flags.replicas),
        watchers: flags.watchReplicas === undefined ? undefined : Number(flags.watchReplicas),
        redisSecret: flags.redisSecret,
        apiSecret: flags.apiSecret,
      };
      process.stdout.write(await textOf(options, flags));
    });
}

async function textOf(
  options: ManifestsOptions,
  { output, runbooks }: Pick<ManifestsFlags, "output" | "runbooks">,
): Promise<string> {
  const yaml = (object: object) => dump(object, { noRefs: true, lineWidth: -1 });
  const [{ makeChartValues }, { makeManifests }] = await Promise.all([
    import("../manifests/make-chart-values.ts"),
    import("../manifests/make-manifests.ts"),
  ]);
  if (output === "values") return yaml(makeChartValues(options));
  if (output === "alerts") return yaml({ groups: await alertsOf(options, runbooks) });
  if (output === "grafana") return yaml(await dashboardOf(options));
  if (output === "acl") return await aclOf(options);
  const items = makeManifests(options);
  if (output === "yaml") return items.map((item) => `---\n${yaml(item)}`).join("");
  return `${JSON.stringify({ apiVersion: "v1", kind: "List", items }, null, 2)}\n`;
}

async function alertsOf({ config, settings }: ManifestsOptions, runbooks: string): Promise<object> {
  const { servedClusters } = await import("@konverge/worker");
  const clusters = servedClusters(config, settings);
  const address = runbooks.replace(/\/+$/, "");
  return alertGroups({ installation: settings.prefix, clusters, runbooks: address });
}

async function dashboardOf({ installation }: ManifestsOptions): Promise<object> {
  const { dashboardConfigMap } = await import("../manifests/grafana-dashboard.ts");
  return dashboardConfigMap(installation);
}

async function aclOf({ config, settings, installation }: ManifestsOptions): Promise<string> {
  const { servedClusters } = await import("@konverge/worker");
  const { aclText, redisUsers } = await import("../manifests/redis-acl.ts");
  const clusters = servedClusters(config, settings);
  return aclText(redisUsers({ name: installation.name, prefix: settings.prefix, clusters }));
}

const DNS_LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const DNS_SUBDOMAIN = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;
/** The 63 characters of a Service name less the longest suffix, `-watcher-metrics`. */
const MAX_NAME = 47;

/** Reports all invalid flags together, before the cluster rejects them one by one. */
function checkFlags(flags: ManifestsFlags): void {
  const issues: ErrorIssue[] = [];
  const check = (flag: string, isGood: boolean, fix: string, value?: string) => {
    const what = value === undefined ? "" : ` ${JSON.stringify(value)}`;
    if (!isGood) issues.push({ pointer: `/${flag}`, detail: `--${flag}${what}: ${fix}` });
  };
  const {
    image,
    namespace,
    namespaces,
    name,
    replicas,
    watchReplicas,
    redisSecret,
    apiSecret,
    runbooks,
  } = flags;
  const label = "must consist of lower-case letters, digits and dashes";
  // A secret passed by mistake must not appear in a log.
  const secret = "must be the name of a Secret, not its value";
  check(
    "image",
    /^[^\s]+$/.test(image),
    "must be an image such as registry.example/app:1.2.3",
    image,
  );
  check("namespace", DNS_LABEL.test(namespace), label, namespace);
  const areLabels = namespaces?.split(",").every((one) => DNS_LABEL.test(one)) ?? true;
  check("namespaces", areLabels, "must be names of namespaces, separated by commas", namespaces);
  const isName = DNS_LABEL.test(name) && name.length <= MAX_NAME;
  check("name", isName, `${label}, at most ${MAX_NAME} characters`, name);
  check("replicas", /^\d{1,5}$/.test(replicas), "must be a whole number", replicas);
  check(
    "watch-replicas",
    /^[1-9]\d{0,4}$/.test(watchReplicas ?? "1"),
    "must be a whole number from 1",
    watchReplicas,
  );
  check("runbooks", isWebAddress(runbooks), "must be an http or https URL", runbooks);
  check("redis-secret", DNS_SUBDOMAIN.test(redisSecret), secret);
  check("api-secret", DNS_SUBDOMAIN.test(apiSecret ?? "api"), secret);
  if (issues.length > 0) throw invalidConfig(issues, "the options are");
}

function isWebAddress(text: string): boolean {
  return /^https?:$/.test(URL.parse(text)?.protocol ?? "");
}

/** @throws KonvergeError `invalid_config` if the file is outside the build context */
function pathInImage(config: string): string {
  const path = relative(process.cwd(), config);
  if (isAbsolute(path) || path.startsWith("..")) {
    const detail = `--config ${config}: is outside the working directory; set --config-in-image to its path in the image`;
    throw invalidConfig([{ pointer: "/config", detail }], "the options are");
  }
  return path.split(sep).join("/");
}
