import { createLocalGate, type ApiObject } from "@konverge/core";
import { createKubeClient, loadKubeCredentials } from "@konverge/kube";
import type { Command } from "commander";
import { crdsOf } from "../crds-of.ts";
import { applyCrds } from "../install-crds.ts";
import { loadConfig } from "../load-config.ts";
import { readVersion } from "../version.ts";

export function addCrdsCommand(program: Command): void {
  program
    .command("crds")
    .description("print the CRDs of a configuration's resources, fit for kubectl apply -f -")
    .requiredOption("--config <file>", "configuration file")
    .option("--apply", "apply them to the cluster of the kubeconfig instead", false)
    .action(
      async ({ config: path, apply }: { readonly config: string; readonly apply: boolean }) => {
        const items = crdsOf(await loadConfig(path));
        if (apply) await applyAll(items);
        else {
          process.stdout.write(
            `${JSON.stringify({ apiVersion: "v1", kind: "List", items }, null, 2)}\n`,
          );
        }
      },
    );
}

async function applyAll(items: readonly ApiObject[]): Promise<void> {
  const client = createKubeClient({
    credentials: loadKubeCredentials({}),
    gate: createLocalGate({ ratePerSecond: 50, burst: 50 }),
    userAgent: `konverge-cli/${readVersion()}`,
    fieldManager: "konverge-cli",
  });
  try {
    await applyCrds(client, items);
    for (const { metadata } of items) process.stderr.write(`applied ${metadata.name}\n`);
  } finally {
    await client.close();
  }
}
