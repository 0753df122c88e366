import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import {
  ensureError,
  isJsonObject,
  KonvergeError,
  type ApiObject,
  type JsonObject,
  type ResourceType,
} from "@konverge/core";
import { loadCrds } from "./load-crds.ts";
import { readKinds } from "./read-kinds.ts";

/** Set by the server or by kubectl; meaningless in another cluster. */
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

/** A kind that another project defines, with its CRD. */
export interface ForeignKind extends ResourceType {
  crd(): ApiObject & { spec: JsonObject };
}

/**
 * Returns the kinds of CRD files, and of all CRD files in folders, for an API server on this machine.
 * @throws KonvergeError `invalid_request` if a path cannot be read or has no CRD
 */
export async function loadForeignKinds(paths: readonly string[]): Promise<ForeignKind[]> {
  const files = (await Promise.all(paths.map(filesOf))).flat();
  const crds = (await Promise.all(files.map(loadCrds))).flat();
  return crds.flatMap((crd) => {
    const portable = portableCrd(crd);
    return readKinds([crd]).map(({ group, version, kind, resource, scope }) => ({
      group,
      version,
      kind,
      resource,
      scope,
      crd: () => structuredClone(portable),
    }));
  });
}

/**
 * Returns a CRD without the parts that belong to one cluster. Annotations stay: groups of Kubernetes require one. The
 * conversion webhook is left out, because it runs in the other project.
 */
export function portableCrd(crd: JsonObject): ApiObject & { spec: JsonObject } {
  const metadata = isJsonObject(crd["metadata"]) ? crd["metadata"] : {};
  const { conversion: _, ...spec } = isJsonObject(crd["spec"]) ? crd["spec"] : {};
  const given = isJsonObject(metadata["annotations"]) ? metadata["annotations"] : {};
  const { [LAST_APPLIED]: _applied, ...rest } = given;
  const annotations = Object.fromEntries(
    Object.entries(rest).map(([name, value]) => [name, String(value)]),
  );
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: {
      name: String(metadata["name"]),
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    },
    spec,
  };
}

async function filesOf(path: string): Promise<string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path];
    const names = (await readdir(path)).filter((name) => /\.(ya?ml|json)$/.test(name));
    if (names.length > 0) return names.toSorted().map((name) => join(path, name));
  } catch (cause) {
    const detail = `${path} cannot be read: ${ensureError(cause).message}`;
    throw new KonvergeError("invalid_request", detail, { cause });
  }
  throw new KonvergeError(
    "invalid_request",
    `${path} contains no YAML or JSON file; pass a file or a folder with CRDs`,
  );
}
