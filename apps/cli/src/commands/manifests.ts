import { isAbsolute, relative, sep } from "node:path";
import { readSettings } from "@konverge/contracts";
import { invalidConfig, type ErrorIssue } from "@konverge/core";
import { Option, type Command } from "commander";
import { dump } from "js-yaml";
import { loadConfig } from "../config/load-config.ts";
import type { ManifestsOptions } from "../manifests/make-manifests.ts";

interface ManifestsFlags {
  readonly config: string;
  readonly image: string;
  readonly configInImage?: string;
  readonly namespace: string;
  readonly name: string;
  readonly replicas: string;
  readonly watchers?: string;
  readonly redisSecret: string;
  readonly apiSecret?: string;
  readonly output: "yaml" | "json" | "values";
}

export function addManifestsCommand(program: Command): void {
  program
    .command("manifests")
    .description(
      "print what runs a configuration on a cluster, fit for kubectl apply --server-side -f -",
    )
    .requiredOption("--config <file>", "configuration file")
    .requiredOption("--image <image>", "image whose entry point is the command line")
    .option(
      "--config-in-image <path>",
      "configuration file inside of the image; default: as --config, from the image's working directory",
    )
    .option("--namespace <name>", "namespace of the workers", "konverge")
    .option(
      "--name <name>",
      "name of the service account, and prefix of the deployments",
      "konverge",
    )
    .option("--replicas <n>", "workers", "2")
    .option(
      "--watchers <n>",
      "pods that only watch; the workers then only work, and can be scaled on their own",
    )
    .option("--redis-secret <name>", "Secret whose key `url` is the URL of Redis", "konverge-redis")
    .option(
      "--api-secret <name>",
      "also the HTTP API, with the key `token` of this Secret as its token",
    )
    .addOption(
      new Option("-o, --output <format>", "values: for the Helm chart")
        .choices(["yaml", "json", "values"])
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
        replicas: Number(flags.replicas),
        watchers: flags.watchers === undefined ? undefined : Number(flags.watchers),
        redisSecret: flags.redisSecret,
        apiSecret: flags.apiSecret,
      };
      process.stdout.write(await textOf(options, flags.output));
    });
}

async function textOf(
  options: ManifestsOptions,
  output: ManifestsFlags["output"],
): Promise<string> {
  const yaml = (object: object) => dump(object, { noRefs: true, lineWidth: -1 });
  const [{ makeChartValues }, { makeManifests }] = await Promise.all([
    import("../manifests/make-chart-values.ts"),
    import("../manifests/make-manifests.ts"),
  ]);
  if (output === "values") return yaml(makeChartValues(options));
  const items = makeManifests(options);
  if (output === "yaml") return items.map((item) => `---\n${yaml(item)}`).join("");
  return `${JSON.stringify({ apiVersion: "v1", kind: "List", items }, null, 2)}\n`;
}

const DNS_LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const DNS_SUBDOMAIN = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;
/** Longest of what is put behind the name: `-watcher-metrics`, of a Service's 63 characters. */
const MAX_NAME = 47;

/** Wrong ones are told here, all at once, and not one by one by the cluster. */
function checkFlags(flags: ManifestsFlags): void {
  const issues: ErrorIssue[] = [];
  const check = (flag: string, isGood: boolean, cure: string, value?: string) => {
    const what = value === undefined ? "" : ` ${JSON.stringify(value)}`;
    if (!isGood) issues.push({ pointer: `/${flag}`, detail: `--${flag}${what}: ${cure}` });
  };
  const { image, namespace, name, replicas, watchers, redisSecret, apiSecret } = flags;
  const label = "write lower-case letters, digits and dashes";
  // Whoever writes the secret itself must not meet it again in a log.
  const secret = "write the name of a Secret, not its value";
  check(
    "image",
    /^[^\s]+$/.test(image),
    "write an image such as registry.example/app:1.2.3",
    image,
  );
  check("namespace", DNS_LABEL.test(namespace), label, namespace);
  const isName = DNS_LABEL.test(name) && name.length <= MAX_NAME;
  check("name", isName, `${label}, at most ${MAX_NAME}`, name);
  check("replicas", /^\d{1,5}$/.test(replicas), "write a whole number", replicas);
  check(
    "watchers",
    /^[1-9]\d{0,4}$/.test(watchers ?? "1"),
    "write a whole number from 1",
    watchers,
  );
  check("redis-secret", DNS_SUBDOMAIN.test(redisSecret), secret);
  check("api-secret", DNS_SUBDOMAIN.test(apiSecret ?? "api"), secret);
  if (issues.length > 0) throw invalidConfig(issues, "the options are");
}

/** @throws KonvergeError `invalid_config` for a file that a build from here cannot have taken along */
function pathInImage(config: string): string {
  const path = relative(process.cwd(), config);
  if (isAbsolute(path) || path.startsWith("..")) {
    const detail = `--config ${config}: lies outside of this folder; say with --config-in-image where the image has it`;
    throw invalidConfig([{ pointer: "/config", detail }], "the options are");
  }
  return path.split(sep).join("/");
}
