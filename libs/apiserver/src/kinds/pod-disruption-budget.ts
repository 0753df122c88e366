import type { JsonObject } from "@konverge/core";
import { invalid, type FieldError } from "../errors/field-error.ts";
import { objectOf } from "../objects/metadata.ts";
import { defineBuiltinKind } from "./builtin-kind.ts";
import type { ResourceKind } from "./resource-kind.ts";

export const podDisruptionBudget: ResourceKind = defineBuiltinKind({
  group: "policy",
  version: "v1",
  kind: "PodDisruptionBudget",
  resource: "poddisruptionbudgets",
  shortNames: ["pdb"],
  definition: "policy.v1.PodDisruptionBudget",
  subresources: ["status"],
  updatesUnconditionally: false,
  generationOf: (object) => object["spec"],
  prepareCreate: (object) => {
    object["status"] = {
      disruptionsAllowed: 0,
      currentHealthy: 0,
      desiredHealthy: 0,
      expectedPods: 0,
    };
  },
  validateCreate: validateBudget,
  validateUpdate: (next, _live, subresource) =>
    subresource === "status" ? [] : validateBudget(next),
});

function validateBudget(object: JsonObject): FieldError[] {
  const spec = objectOf(object, "spec") ?? {};
  if (spec["minAvailable"] === undefined || spec["maxUnavailable"] === undefined) return [];
  return [invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set")];
}
