import type { JsonObject } from "@konverge/core";
import { invalid, required, type FieldError } from "../errors/field-error.ts";
import { objectOf, objectsOf, textOf } from "../objects/metadata.ts";
import { defineBuiltinKind } from "./builtin-kind.ts";
import { memberOf } from "./pod-template.ts";
import type { ResourceKind } from "./resource-kind.ts";

export const ingress: ResourceKind = defineBuiltinKind({
  group: "networking.k8s.io",
  version: "v1",
  kind: "Ingress",
  resource: "ingresses",
  shortNames: ["ing"],
  definition: "networking.v1.Ingress",
  subresources: ["status"],
  generationOf: (object) => object["spec"],
  prepareCreate: (object) => {
    object["status"] = { loadBalancer: {} };
  },
  applyDefaults: (object) => {
    memberOf(memberOf(object, "status"), "loadBalancer");
  },
  validateCreate: validateIngress,
  validateUpdate: (next, _live, subresource) =>
    subresource === "status" ? [] : validateIngress(next),
});

function validateIngress(object: JsonObject): FieldError[] {
  const spec = objectOf(object, "spec") ?? {};
  const rules = objectsOf(spec, "rules");
  const backend = objectOf(spec, "defaultBackend");
  const errors: FieldError[] = [];
  if (rules.length === 0 && backend === undefined) {
    errors.push(invalid("spec", null, "either `defaultBackend` or `rules` must be specified"));
  }
  if (backend !== undefined) errors.push(...validateBackend(backend, "spec.defaultBackend"));
  for (const [index, rule] of rules.entries()) {
    const paths = objectsOf(objectOf(rule, "http") ?? {}, "paths");
    for (const [at, path] of paths.entries()) {
      errors.push(...validatePath(path, `spec.rules[${index}].http.paths[${at}]`));
    }
  }
  return errors;
}

function validatePath(path: JsonObject, place: string): FieldError[] {
  const type = textOf(path, "pathType");
  if (type === "") return [required(`${place}.pathType`, "pathType must be specified")];
  const text = textOf(path, "path");
  const mayBeEmpty = type === "ImplementationSpecific" && text === "";
  const errors = validateBackend(objectOf(path, "backend") ?? {}, `${place}.backend`);
  if (mayBeEmpty || text.startsWith("/")) return errors;
  return [invalid(`${place}.path`, text, "must be an absolute path"), ...errors];
}

function validateBackend(backend: JsonObject, place: string): FieldError[] {
  if (objectOf(backend, "resource") !== undefined) return [];
  const service = objectOf(backend, "service");
  if (service === undefined) return [required(place, "port name or number is required")];
  const port = objectOf(service, "port") ?? {};
  const hasPort = textOf(port, "name") !== "" || Number(port["number"] ?? 0) !== 0;
  return [
    ...(textOf(service, "name") === "" ? [required(`${place}.service.name`)] : []),
    ...(hasPort ? [] : [required(place, "port name or number is required")]),
  ];
}
