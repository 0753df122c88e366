import { jsonEquals, type JsonObject } from "@konverge/core";
import { invalid, notSupported, required, type FieldError } from "../errors/field-error.ts";
import { objectOf, objectsOf, stringsOf, textOf } from "../objects/metadata.ts";
import { defineBuiltinKind, type BuiltinKindOptions } from "./builtin-kind.ts";
import { memberOf } from "./pod-template.ts";
import type { ResourceKind } from "./resource-kind.ts";

const GROUP = "rbac.authorization.k8s.io";
const shared: Pick<BuiltinKindOptions, "group" | "version" | "createsOnUpdate" | "nameErrors"> = {
  group: GROUP,
  version: "v1",
  createsOnUpdate: true,
  // Names such as `system:node` are used.
  nameErrors: (name) =>
    /^\.{1,2}$|[%/]/.test(name) ? ["may not be '.' or '..', or have '/', '%'"] : [],
};

/** Stored as data: every caller may do everything. */
export const role: ResourceKind = defineBuiltinKind({
  ...shared,
  kind: "Role",
  resource: "roles",
  definition: "rbac.v1.Role",
  validateCreate: (object) => validateRules(object, true),
  validateUpdate: (next) => validateRules(next, true),
});

export const clusterRole: ResourceKind = defineBuiltinKind({
  ...shared,
  kind: "ClusterRole",
  resource: "clusterroles",
  namespaced: false,
  definition: "rbac.v1.ClusterRole",
  validateCreate: (object) => validateRules(object, false),
  validateUpdate: (next) => validateRules(next, false),
});

export const roleBinding: ResourceKind = defineBuiltinKind({
  ...shared,
  kind: "RoleBinding",
  resource: "rolebindings",
  definition: "rbac.v1.RoleBinding",
  applyDefaults: defaultBinding,
  validateCreate: (object) => validateBinding(object, ["Role", "ClusterRole"]),
  validateUpdate: (next, live) => [
    ...validateBinding(next, ["Role", "ClusterRole"]),
    ...validateRoleRef(next, live),
  ],
});

export const clusterRoleBinding: ResourceKind = defineBuiltinKind({
  ...shared,
  kind: "ClusterRoleBinding",
  resource: "clusterrolebindings",
  namespaced: false,
  definition: "rbac.v1.ClusterRoleBinding",
  applyDefaults: defaultBinding,
  validateCreate: (object) => validateBinding(object, ["ClusterRole"]),
  validateUpdate: (next, live) => [
    ...validateBinding(next, ["ClusterRole"]),
    ...validateRoleRef(next, live),
  ],
});

function defaultBinding(object: JsonObject): void {
  const reference = memberOf(object, "roleRef");
  if (textOf(reference, "apiGroup") === "") reference["apiGroup"] = GROUP;
  for (const subject of objectsOf(object, "subjects")) {
    const isPerson = subject["kind"] === "User" || subject["kind"] === "Group";
    if (isPerson) subject["apiGroup"] ??= GROUP;
  }
}

function validateRules(object: JsonObject, isNamespaced: boolean): FieldError[] {
  return objectsOf(object, "rules").flatMap((rule, index) => {
    const place = `rules[${index}]`;
    const urls = stringsOf(rule, "nonResourceURLs");
    const isEmpty = (member: string) => stringsOf(rule, member).length === 0;
    const errors: FieldError[] = [];
    if (isEmpty("verbs")) {
      errors.push(required(`${place}.verbs`, "verbs must contain at least one value"));
    }
    if (urls.length > 0) {
      if (isNamespaced) {
        const detail = "namespaced rules cannot apply to non-resource URLs";
        errors.push(invalid(`${place}.nonResourceURLs`, urls, detail));
      }
      return errors;
    }
    if (isEmpty("apiGroups")) {
      const detail = "resource rules must supply at least one api group";
      errors.push(required(`${place}.apiGroups`, detail));
    }
    if (isEmpty("resources")) {
      const detail = "resource rules must supply at least one resource";
      errors.push(required(`${place}.resources`, detail));
    }
    return errors;
  });
}

function validateBinding(object: JsonObject, kinds: readonly string[]): FieldError[] {
  const reference = objectOf(object, "roleRef") ?? {};
  const kind = textOf(reference, "kind");
  return [
    ...(kinds.includes(kind) ? [] : [notSupported("roleRef.kind", kind, kinds)]),
    ...(textOf(reference, "name") === "" ? [required("roleRef.name")] : []),
    ...objectsOf(object, "subjects").flatMap((subject, index) =>
      textOf(subject, "name") === "" ? [required(`subjects[${index}].name`)] : [],
    ),
  ];
}

function validateRoleRef(next: JsonObject, live: JsonObject): FieldError[] {
  const { roleRef } = next;
  if (jsonEquals(roleRef, live["roleRef"])) return [];
  return [invalid("roleRef", roleRef ?? null, "cannot change roleRef")];
}
