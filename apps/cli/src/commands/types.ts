import { writeFile } from "node:fs/promises";
import { ensureError, KonvergeError } from "@konverge/core";
import type { Command } from "commander";
import type { KindSelection } from "../crd-types/read-kinds.ts";
import { printNote } from "../text/output.ts";

interface TypesFlags extends KindSelection {
  readonly fromCluster?: boolean;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly out?: string;
  readonly zod?: boolean;
}

const HELP = `
Examples:
  konverge types cert-manager.crds.yaml -o src/cert-manager.ts
  konverge types --from-cluster --group keda.sh -o src/keda.ts
  konverge types cert-manager.crds.yaml --zod -o src/cert-manager.ts`;

export function addTypesCommand(program: Command): void {
  program
    .command("types")
    .description("Print TypeScript types of the CRDs of other projects")
    .argument("[files...]", "YAML or JSON files with CRDs")
    .option("--from-cluster", "Read the CRDs of the kubeconfig's cluster instead of files")
    .option("--group <group>", "Only kinds of this API group")
    .option("--kind <kind>", "Only this kind")
    .option("--api-version <version>", "Version of the kinds (default: the storage version)")
    .option("--zod", "Print zod schemas as well, and declare the types from them")
    .option("-o, --out <file>", "File to write (default: standard output)")
    .option(
      "--kubeconfig <file>",
      "Kubeconfig (default: KONVERGE_KUBECONFIG, or the same as kubectl)",
    )
    .option(
      "--context <name>",
      "Kubeconfig context (default: KONVERGE_CONTEXT, or the current context)",
    )
    .addHelpText("after", HELP)
    .action(async (files: readonly string[], flags: TypesFlags) => {
      requireSource(files, flags);
      const { typesFile } = await import("../crd-types/types-file.ts");
      const command = commandOf(files, flags);
      const { text, count } = await typesFile({ ...flags, files, command });
      if (flags.out === undefined) {
        process.stdout.write(text);
        return;
      }
      await writeFile(flags.out, text).catch((cause: unknown) => {
        const detail = `--out ${flags.out ?? ""} cannot be written: ${ensureError(cause).message}`;
        throw new KonvergeError("invalid_request", detail, { cause });
      });
      printNote(`wrote ${count} kinds to ${flags.out}`);
    });
}

function requireSource(files: readonly string[], { fromCluster = false }: TypesFlags): void {
  if (fromCluster !== files.length > 0) return;
  throw new KonvergeError("invalid_request", "pass either files with CRDs or --from-cluster");
}

/** Returns the command without the places of output and cluster, which differ between machines. */
function commandOf(files: readonly string[], { fromCluster, ...flags }: TypesFlags): string {
  const options = [
    ["--group", flags.group],
    ["--kind", flags.kind],
    ["--api-version", flags.apiVersion],
  ].flatMap(([name = "", value]) => (value === undefined ? [] : [name, value]));
  const words = [
    "konverge",
    "types",
    ...files,
    ...(fromCluster === true ? ["--from-cluster"] : []),
    ...(flags.zod === true ? ["--zod"] : []),
  ];
  return [...words, ...options].join(" ");
}
