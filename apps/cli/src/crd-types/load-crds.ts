import { readFile } from "node:fs/promises";
import { ensureError, isJsonObject, KonvergeError, type JsonObject } from "@konverge/core";
import { loadAll } from "js-yaml";

/**
 * Returns the CRDs of a YAML or JSON file. Documents of other kinds are ignored.
 * @throws KonvergeError `invalid_request` if the file cannot be read or has no CRD
 */
export async function loadCrds(path: string): Promise<JsonObject[]> {
  const text = await readFile(path, "utf8").catch((cause: unknown) => {
    throw new KonvergeError(
      "invalid_request",
      `${path} cannot be read: ${ensureError(cause).message}`,
      { cause },
    );
  });
  const crds = parsed(path, text)
    .flatMap((document) => (isJsonObject(document) ? itemsOf(document) : []))
    .filter(({ kind }) => kind === "CustomResourceDefinition");
  if (crds.length > 0) return crds;
  throw new KonvergeError(
    "invalid_request",
    `${path} contains no CustomResourceDefinition; pass a file with CRDs, or use --from-cluster`,
  );
}

function parsed(path: string, text: string): unknown[] {
  try {
    return loadAll(text);
  } catch (cause) {
    throw new KonvergeError(
      "invalid_request",
      `${path} is not valid YAML: ${ensureError(cause).message}; render templates of Helm first, with \`helm template\``,
      { cause },
    );
  }
}

/** `kubectl get crds -o yaml` prints a list. */
function itemsOf(document: JsonObject): JsonObject[] {
  return Array.isArray(document["items"]) ? document["items"].filter(isJsonObject) : [document];
}
