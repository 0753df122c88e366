import type { Command } from "commander";
import type { Resource } from "@konverge/engine";
import { loadConfig } from "../load-config.ts";

export function addCrdsCommand(program: Command): void {
  program
    .command("crds")
    .description("print the CRDs of a configuration's resources, fit for kubectl apply -f -")
    .requiredOption("--config <file>", "configuration file")
    .action(async ({ config: path }: { readonly config: string }) => {
      const { controllers } = await loadConfig(path);
      const types = new Map(
        controllers
          .flatMap((controller) => [
            controller.for,
            ...controller.owns,
            ...controller.watches.map(({ type }) => type),
          ])
          .map((type) => [`${type.resource}.${type.group}`, type]),
      );
      const items = [...types.values()]
        .filter((type): type is Resource => "crd" in type)
        .map((type) => type.crd());
      process.stdout.write(
        `${JSON.stringify({ apiVersion: "v1", kind: "List", items }, null, 2)}\n`,
      );
    });
}
