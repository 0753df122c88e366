import { Command } from "commander";
import { expect, test } from "vitest";
import { addInitCommand } from "./init.ts";

const FILE = "test/integration/kube/published-crds/keda.yaml";

test.each([
  [["--from-crd", FILE], "select one CRD with --crd: scaledobjects.keda.sh, triggerauth"],
  [["--from-crd", FILE, "--crd", "a.b"], "no CRD has the name a.b; found: scaledobjects.keda.sh,"],
  [["--from-crd", FILE, "--from-cluster"], "pass either --from-crd or --from-cluster"],
  [["--from-cluster"], "--from-cluster needs --crd with the name of a CRD"],
  [["--crd", "a.b"], "--crd needs --from-crd <file> or --from-cluster"],
])("init %j is rejected with the fix", async (args, message) => {
  const program = new Command();
  addInitCommand(program);
  const ended = program.parseAsync(["node", "konverge", "init", "none", ...args]);
  await expect(ended).rejects.toThrow(message);
});
