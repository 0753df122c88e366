import { copyFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { createApiServer } from "@konverge/apiserver";
import { createLocalGate, type ApiObject } from "@konverge/core";
import { createKubeClient, loadKubeCredentials } from "@konverge/kube";
import { CustomResourceDefinition } from "@konverge/kube/kinds";
import { expect, onTestFinished, test } from "vitest";
import { loadCrds } from "../../apps/cli/src/crd-types/load-crds.ts";
import { blockOf } from "../integration/docs/load-block.ts";
import { shellLines } from "../support/shell-lines.ts";
import { runCommand } from "./cli-runner.ts";

const ELSEWHERE = "/dev/null/none";

test.each([
  ["the settings", "{}", true],
  ["the configuration, which the settings do not override", "{ kubeconfig: HERE }", false],
])("CRDs are applied where the workers will look: %s", async (_title, options, isSet) => {
  const server = await createApiServer();
  onTestFinished(() => server.close());
  const folder = await mkdtemp(join(import.meta.dirname, "crds-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const kubeconfig = join(folder, "kubeconfig");
  await writeFile(kubeconfig, server.kubeconfig);
  const config = join(folder, "konverge.config.ts");
  const examples = JSON.stringify(resolve("apps/examples/src/konverge.config.ts"));
  await writeFile(
    config,
    `import config from ${examples};
const HERE = ${JSON.stringify(kubeconfig)};
export default { ...config, clusters: { default: ${options} } };\n`,
  );
  const env = { KUBECONFIG: ELSEWHERE, KONVERGE_KUBECONFIG: isSet ? kubeconfig : ELSEWHERE };
  const applied = await runCommand(["crds", "--config", config, "--apply"], env);
  expect(applied, applied.stderr).toMatchObject({ code: 0, stdout: "" });
  expect(applied.stderr).toMatch(/^applied nodepools\.demo\.konverge\.dev$/m);
  const looked = await runCommand(["doctor", "--config", config, "-o", "json"], env);
  expect(looked.stdout).toContain(server.url);
});

test("docs/bring-your-code.md: types of the CRDs of a file and of a cluster", async () => {
  const server = await createApiServer();
  onTestFinished(() => server.close());
  const folder = await mkdtemp(join(import.meta.dirname, "crds-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const kubeconfig = join(folder, "kubeconfig");
  await writeFile(kubeconfig, server.kubeconfig);
  const file = "cert-manager.crds.yaml";
  await copyFile("test/integration/kube/published-crds/cert-manager.yaml", join(folder, file));
  await installFrom(server.kubeconfig, join(folder, file));
  const env = { KUBECONFIG: ELSEWHERE, KONVERGE_KUBECONFIG: kubeconfig };
  const lines = [1, 2].flatMap((block) =>
    shellLines(blockOf(`docs/bring-your-code.md sh ${block}`).text),
  );
  expect(lines).toHaveLength(3);
  const written: string[] = [];
  for (const [, program, ...words] of lines) {
    expect(program).toBe("konverge");
    const out = join(folder, "cert-manager.ts");
    const args = words.map((word) =>
      word === file ? join(folder, file) : word === "src/cert-manager.ts" ? out : word,
    );
    const ended = await runCommand(args, env);
    expect(ended, ended.stderr).toMatchObject({ code: 0, stdout: "" });
    // The file has a kind of another group as well.
    expect(ended.stderr).toBe(`wrote ${args.includes("--group") ? 2 : 3} kinds to ${out}\n`);
    written.push(await readFile(out, "utf8"));
  }
  const [ofFile = "", ofCluster = "", ofZod = ""] = written.map((text) =>
    text.split("\n\n").slice(1).join("\n\n"),
  );
  expect(ofZod).toContain("export const CertificateSpec = z.object({");
  expect(ofCluster).not.toBe("");
  expect(ofFile.endsWith(ofCluster)).toBe(true);
  expect(ofCluster).toContain("export const Certificate: ResourceType<Certificate> = {");

  const project = join(folder, "certificate-operator");
  const name = "certificates.cert-manager.io";
  const created = await runCommand(["init", project, "--from-cluster", "--crd", name], env);
  expect(created, created.stderr).toMatchObject({ code: 0, stdout: "" });
  const crd = await readFile(join(project, `crds/${name}.yaml`), "utf8");
  expect(crd).toMatch(/^apiVersion: apiextensions\.k8s\.io\/v1\nkind: CustomResourceDefinition\n/);
  expect(crd).not.toMatch(/uid|managedFields|storedVersions/);
});

async function installFrom(kubeconfigText: string, file: string): Promise<void> {
  const client = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigText }),
    gate: createLocalGate({ ratePerSecond: 50, burst: 50 }),
    userAgent: "konverge-test/1",
  });
  try {
    for (const crd of await loadCrds(file)) {
      await client.create(CustomResourceDefinition, crd as unknown as ApiObject);
    }
  } finally {
    await client.close();
  }
}
