import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { createApiServer } from "@konverge/apiserver";
import { expect, onTestFinished, test } from "vitest";
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
