import { writeFile } from "node:fs/promises";
import { readSettings } from "@konverge/contracts";
import { defined, ensureError, KonvergeError, type JsonObject } from "@konverge/core";
import type { Command } from "commander";
import { loadCrds } from "../crd-types/load-crds.ts";
import { makeTypeFile } from "../crd-types/make-type-file.ts";
import { readKinds, type KindSelection } from "../crd-types/read-kinds.ts";
import { printNote } from "../text/output.ts";

interface TypesFlags extends KindSelection {
  readonly fromCluster?: boolean;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly out?: string;
}

const HELP = `
Examples:
  konverge types cert-manager.crds.yaml -o src/cert-manager.ts
  konverge types --from-cluster --group keda.sh -o src/keda.ts`;

export function addTypesCommand(program: Command): void {
  program
    .command("types")
    .description("Print TypeScript types of the CRDs of other projects")
    .argument("[files...]", "YAML or JSON files with CRDs")
    .option("--from-cluster", "Read the CRDs of the kubeconfig's cluster instead of files")
    .option("--group <group>", "Only kinds of this API group")
    .option("--kind <kind>", "Only this kind")
    .option("--api-version <version>", "Version of the kinds (default: the storage version)")
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
      const kinds = readKinds(await findCrds(files, flags), flags);
      const text = makeTypeFile(kinds, commandOf(files, flags));
      if (flags.out === undefined) {
        process.stdout.write(text);
        return;
      }
      await writeFile(flags.out, text).catch((cause: unknown) => {
        const detail = `--out ${flags.out ?? ""} cannot be written: ${ensureError(cause).message}`;
        throw new KonvergeError("invalid_request", detail, { cause });
      });
      printNote(`wrote ${kinds.length} kinds to ${flags.out}`);
    });
}

async function findCrds(files: readonly string[], flags: TypesFlags): Promise<JsonObject[]> {
  const { fromCluster = false } = flags;
  if (fromCluster === files.length > 0) {
    throw new KonvergeError("invalid_request", "pass either files with CRDs or --from-cluster");
  }
  if (!fromCluster) return (await Promise.all(files.map(loadCrds))).flat();
  const settings = readSettings({ env: process.env });
  const { kubeconfig = settings.kubeconfig, context = settings.context } = flags;
  const { listCrds } = await import("../crd-types/list-crds.ts");
  const crds = await listCrds(defined({ kubeconfigPath: kubeconfig, context }));
  if (crds.length > 0) return crds;
  throw new KonvergeError("not_found", "the cluster has no CRDs; check the kubeconfig and context");
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
  ];
  return [...words, ...options].join(" ");
}
