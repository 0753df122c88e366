import { forbidden, invalid, tooLong, type FieldError } from "../errors/field-error.ts";
import { jsonEquals, type JsonObject, subdomainErrors } from "@konverge/core";
import { unqualifiedFinalizerErrors } from "../objects/finalizer-rules.ts";
import { objectOf } from "../objects/metadata.ts";
import { validateMetadata } from "../objects/metadata-validation.ts";
import { defineBuiltinKind } from "./builtin-kind.ts";
import type { ResourceKind } from "./resource-kind.ts";

/** Content of a ConfigMap or Secret, in bytes. */
const MAX_BYTES = 1024 * 1024;
const KEY = /^[-._a-zA-Z0-9]+$/;
const KEY_RULE =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

export const configMap: ResourceKind = defineBuiltinKind({
  group: "",
  version: "v1",
  kind: "ConfigMap",
  resource: "configmaps",
  shortNames: ["cm"],
  definition: "core.v1.ConfigMap",
  validateCreate: validateConfigMap,
  validateUpdate: (next, live) => [
    ...validateImmutable(next, live, ["data", "binaryData"]),
    ...validateAgain(next),
    ...validateConfigMap(next),
  ],
});

/** Validates all metadata of a ConfigMap or Secret a second time on an update, as the real server does. */
export const validateAgain = (object: JsonObject): FieldError[] => [
  ...validateMetadata(object, true, subdomainErrors),
  ...unqualifiedFinalizerErrors(object),
];

function validateConfigMap(object: JsonObject): FieldError[] {
  const data = objectOf(object, "data") ?? {};
  const binary = objectOf(object, "binaryData") ?? {};
  const errors: FieldError[] = [];
  for (const key of Object.keys(data)) {
    errors.push(...validateDataKey("data", key));
    if (Object.hasOwn(binary, key)) {
      errors.push(invalid(`data[${key}]`, key, "duplicate of key present in binaryData"));
    }
  }
  for (const key of Object.keys(binary)) errors.push(...validateDataKey("binaryData", key));
  const bytes =
    Object.values(data).reduce<number>((sum, value) => sum + byteLength(value), 0) +
    Object.values(binary).reduce<number>((sum, value) => sum + decodedLength(value), 0);
  if (bytes > MAX_BYTES) errors.push(tooLong("[]", MAX_BYTES));
  return errors;
}

/** Validates the keys of a ConfigMap or Secret. */
export function validateDataKey(member: string, key: string): FieldError[] {
  const path = `${member}[${key}]`;
  if (key.length > 253) return [invalid(path, key, "must be no more than 253 bytes")];
  return KEY.test(key) ? [] : [invalid(path, key, KEY_RULE)];
}

/** Requires that an immutable ConfigMap or Secret stays unchanged and immutable. */
export function validateImmutable(
  next: JsonObject,
  live: JsonObject,
  members: readonly string[],
): FieldError[] {
  if (live["immutable"] !== true) return [];
  const changed = [
    ...(next["immutable"] === true ? [] : ["immutable"]),
    ...members.filter((member) => !jsonEquals(next[member], live[member])),
  ];
  return changed.map((member) => forbidden(member, "field is immutable when `immutable` is set"));
}

const byteLength = (value: unknown) => Buffer.byteLength(String(value));
/** Returns the number of bytes of a base64 text. */
export const decodedLength = (value: unknown): number =>
  Buffer.from(String(value), "base64").length;
