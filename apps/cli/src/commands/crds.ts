import { KonvergeError, type ApiObject } from "@konverge/core";
import { Option, type Command } from "commander";
import { dump } from "js-yaml";
import { crdsOf } from "../config/crds-of.ts";
import { loadConfig, loadWorkerConfig } from "../config/load-config.ts";

interface CrdsFlags {
  readonly config: string;
  readonly apply?: boolean;
  readonly force?: boolean;
  readonly output: "yaml" | "json";
}

export function addCrdsCommand(program: Command): void {
  program
    .command("crds")
    .description("Print CRDs, or apply them with --apply")
    .requiredOption("--config <file>", "Configuration file (required)")
    .option("--apply", "Apply the CRDs to the workers' cluster instead of printing them")
    .option("--force", "With --apply, take fields over from other field managers")
    .addOption(
      new Option("-o, --output <format>", "Output format")
        .choices(["yaml", "json"])
        .default("yaml"),
    )
    .action(async ({ config: path, apply = false, force = false, output }: CrdsFlags) => {
      if (apply) {
        const { config, settings } = await loadWorkerConfig(path, process.env);
        const { applyCrds } = await import("../config/apply-crds.ts");
        const { kubeconfigOf } = await import("../config/kubeconfig-of.ts");
        return await applyCrds(config, kubeconfigOf(settings, config), { force });
      }
      if (force) {
        throw new KonvergeError(
          "invalid_request",
          "--force applies only with --apply; add --apply",
        );
      }
      const items = crdsOf(await loadConfig(path));
      process.stdout.write(output === "json" ? toJson(items) : toYaml(items));
    });
}

function toYaml(items: readonly ApiObject[]): string {
  return items.map((item) => dump(item, { noRefs: true, lineWidth: -1 })).join("---\n");
}

function toJson(items: readonly ApiObject[]): string {
  return `${JSON.stringify({ apiVersion: "v1", kind: "List", items }, null, 2)}\n`;
}
