import { jsonEquals, type JsonObject } from "@konverge/core";
import { invalid, tooLong, type FieldError } from "../errors/field-error.ts";
import { objectOf } from "../objects/metadata.ts";
import { defineBuiltinKind } from "./builtin-kind.ts";
import { decodedLength, validateAgain, validateDataKey, validateImmutable } from "./config-map.ts";
import type { ResourceKind } from "./resource-kind.ts";

const MAX_BYTES = 1024 * 1024;

export const secret: ResourceKind = defineBuiltinKind({
  group: "",
  version: "v1",
  kind: "Secret",
  resource: "secrets",
  definition: "core.v1.Secret",
  selectableFields: ["type"],
  applyDefaults: (object) => {
    object["type"] ??= "Opaque";
    const plain = objectOf(object, "stringData");
    if (plain === undefined) return;
    // Write-only: reads return only `data`.
    const data = { ...objectOf(object, "data") };
    for (const [key, value] of Object.entries(plain)) {
      data[key] = Buffer.from(String(value)).toString("base64");
    }
    object["data"] = data;
    delete object["stringData"];
  },
  validateCreate: validateSecret,
  validateUpdate: (next, live) => [
    ...(jsonEquals(next["type"], live["type"])
      ? []
      : [invalid("type", next["type"] ?? "", "field is immutable")]),
    ...validateImmutable(next, live, ["data"]),
    ...validateAgain(next),
    ...validateSecret(next),
  ],
});

function validateSecret(object: JsonObject): FieldError[] {
  const data = objectOf(object, "data") ?? {};
  const errors = Object.keys(data).flatMap((key) => validateDataKey("data", key));
  const bytes = Object.values(data).reduce<number>((sum, value) => sum + decodedLength(value), 0);
  if (bytes > MAX_BYTES) errors.push(tooLong("data", MAX_BYTES));
  return errors;
}
