import { relative } from "node:path";
import { KonvergeError } from "@konverge/core";
import type { Command } from "commander";
import type { ForeignKindChoice } from "../init/foreign-project.ts";

interface InitFlags {
  readonly fromCrd?: string;
  readonly fromCluster?: boolean;
  readonly crd?: string;
  readonly kubeconfig?: string;
  readonly context?: string;
}

const HELP = `
Examples:
  konverge init my-operator
  konverge init my-operator --from-crd keda.crds.yaml --crd scaledobjects.keda.sh
  konverge init my-operator --from-cluster --crd certificates.cert-manager.io`;

export function addInitCommand(program: Command): void {
  program
    .command("init")
    .description("Create a project with controller, CRD, test and Dockerfile")
    .argument("[dir]", "Directory that is empty or does not exist", ".")
    .option("--from-crd <file>", "Reconcile a kind of another project, by its CRD in a file")
    .option("--from-cluster", "Read the CRD from the kubeconfig's cluster instead of a file")
    .option("--crd <name>", "Name of the CRD, such as certificates.cert-manager.io")
    .option(
      "--kubeconfig <file>",
      "Kubeconfig (default: KONVERGE_KUBECONFIG, or the same as kubectl)",
    )
    .option(
      "--context <name>",
      "Kubeconfig context (default: KONVERGE_CONTEXT, or the current context)",
    )
    .addHelpText("after", HELP)
    .action(async (dir: string, flags: InitFlags) => {
      const { initProject } = await import("../init/init-project.ts");
      const folder = await initProject(dir, await foreignKindOf(flags));
      const there = relative(process.cwd(), folder);
      process.stderr.write(
        [
          `created ${folder}`,
          "",
          "Next:",
          ...(there === "" ? [] : [`  cd ${there}`]),
          "  npm install",
          "  npm test          Test the controller with its own API server and Redis",
          "  npm run dev       Run a local stack that reloads on save",
          "",
          "",
        ].join("\n"),
      );
    });
}

async function foreignKindOf(flags: InitFlags): Promise<ForeignKindChoice | undefined> {
  const { fromCrd, fromCluster = false, crd } = flags;
  if (fromCrd !== undefined && fromCluster) {
    throw new KonvergeError("invalid_request", "pass either --from-crd or --from-cluster");
  }
  if (fromCluster && crd === undefined) {
    throw new KonvergeError(
      "invalid_request",
      "--from-cluster needs --crd with the name of a CRD; list them with `kubectl get crds`",
    );
  }
  if (fromCrd === undefined && !fromCluster) {
    if (crd === undefined) return undefined;
    throw new KonvergeError("invalid_request", "--crd needs --from-crd <file> or --from-cluster");
  }
  const { chooseForeignKind } = await import("../init/foreign-project.ts");
  return await chooseForeignKind({ ...flags, files: fromCrd === undefined ? [] : [fromCrd] });
}
