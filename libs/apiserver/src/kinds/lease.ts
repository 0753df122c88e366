import { invalid, type FieldError } from "../errors/field-error.ts";
import { isJsonObject, type JsonObject } from "@konverge/core";
import { defineBuiltinKind } from "./builtin-kind.ts";
import type { ResourceKind } from "./resource-kind.ts";

export const lease: ResourceKind = defineBuiltinKind({
  group: "coordination.k8s.io",
  version: "v1",
  kind: "Lease",
  resource: "leases",
  definition: "coordination.v1.Lease",
  createsOnUpdate: true,
  updatesUnconditionally: false,
  validateCreate: validateLease,
  validateUpdate: validateLease,
  // A Lease without content still has a spec.
  applyDefaults: (object) => {
    object["spec"] ??= {};
  },
});

function validateLease(object: JsonObject): FieldError[] {
  const spec = object["spec"];
  if (!isJsonObject(spec)) return [];
  const errors: FieldError[] = [];
  const { leaseDurationSeconds: seconds, leaseTransitions: transitions } = spec;
  if (typeof seconds === "number" && seconds <= 0) {
    errors.push(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"));
  }
  if (typeof transitions === "number" && transitions < 0) {
    errors.push(
      invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0"),
    );
  }
  return errors;
}
