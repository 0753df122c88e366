import type { JsonObject } from "@konverge/core";

/** Returns true for a field that holds text in the Kubernetes API although its name is free. */
export function isTextField(
  object: JsonObject,
  [first, second, ...rest]: readonly string[],
): boolean {
  if (first === "metadata") {
    return (second === "annotations" || second === "labels") && rest.length === 1;
  }
  const isConfigMap = object["apiVersion"] === "v1" && object["kind"] === "ConfigMap";
  return isConfigMap && first === "data" && second !== undefined && rest.length === 0;
}
