import { Command } from "commander";
import { expect, test } from "vitest";
import { addTypesCommand } from "./types.ts";

test.each([
  [["types"], "pass either files with CRDs or --from-cluster"],
  [["types", "package.json", "--from-cluster"], "pass either files with CRDs or --from-cluster"],
  [["types", "package.json"], "package.json contains no CustomResourceDefinition; pass a file"],
  [["types", "none.yaml"], "none.yaml cannot be read: ENOENT"],
  [["types", "README.md"], "README.md is not valid YAML"],
])("the command %j is rejected with the fix", async (args, message) => {
  const program = new Command();
  addTypesCommand(program);
  const ended = program.parseAsync(["node", "konverge", ...args]);
  await expect(ended).rejects.toThrow(message);
  await expect(ended).rejects.toMatchObject({ code: "invalid_request" });
});
