import { isJsonObject, jsonEquals, type JsonObject, type JsonValue } from "@konverge/core";
import { ignoreNotFound, isForbidden, type KubeClient } from "@konverge/kube";
import { CustomResourceDefinition } from "@konverge/kube/kinds";
import type { Resource } from "./define-resource.ts";

/** Maximum of reported fields. */
const MOST_FIELDS = 5;

/**
 * Returns the fields whose schema differs between the definition and the cluster, for example `spec.replicas`. Returns none if
 * the CRD must not be read, which workers do not require. Makes one call.
 */
export async function findCrdDrift(resource: Resource, client: KubeClient): Promise<string[]> {
  const wanted = resource.crd();
  const live = await client
    .get(CustomResourceDefinition, { name: wanted.metadata.name })
    .catch(ignoreNotFound)
    .catch((error: unknown) => {
      if (isForbidden(error)) return undefined;
      throw error;
    });
  if (live === undefined) return [];
  const fields = differences(
    schemaOf(wanted.spec, resource.version),
    schemaOf(live.spec, resource.version),
  );
  return fields.slice(0, MOST_FIELDS);
}

function schemaOf(spec: JsonObject | undefined, name: string): JsonValue {
  const versions = Array.isArray(spec?.["versions"]) ? spec["versions"].filter(isJsonObject) : [];
  const { schema } = versions.find((version) => version["name"] === name) ?? {};
  return isJsonObject(schema) ? (schema["openAPIV3Schema"] ?? null) : null;
}

/** Paths of the innermost schemas that differ. */
function differences(wanted: JsonValue, live: JsonValue, path = ""): string[] {
  if (jsonEquals(wanted, live)) return [];
  const here = path === "" ? "." : path;
  if (!isJsonObject(wanted) || !isJsonObject(live)) return [here];
  const { properties: ours, required: needed, ...rest } = wanted;
  const { properties: theirs, required: wereNeeded, ...others } = live;
  if (!jsonEquals(rest, others) || !isJsonObject(ours) || !isJsonObject(theirs)) return [here];
  const names = new Set([...Object.keys(ours), ...Object.keys(theirs)]);
  const inner = [...names].flatMap((name) =>
    differences(ours[name] ?? null, theirs[name] ?? null, path === "" ? name : `${path}.${name}`),
  );
  // Added or removed fields change `required` as well; the fields themselves are the better report.
  if (inner.length > 0 || jsonEquals(needed ?? null, wereNeeded ?? null)) return inner;
  return [here];
}
