import { compileRules } from "@konverge/cel";
import { KonvergeError, type JsonObject } from "@konverge/core";

/**
 * Checks the rules in CEL of a schema, with its types.
 * @throws KonvergeError `invalid_config` with the field, the rule and the position
 */
export function checkRules(schema: JsonObject, kind: string): void {
  const { issues } = compileRules(schema, "", true);
  // A newer API server may have more functions.
  const [issue] = issues.filter(({ hasUnknownFunction }) => !hasUnknownFunction);
  if (issue === undefined) return;
  const { valuePath, path, detail } = issue;
  const member = path.slice(path.lastIndexOf("x-kubernetes-validations"));
  throw new KonvergeError(
    "invalid_config",
    `${kind}${valuePath} has an invalid rule: ${detail} (${member})`,
  );
}
