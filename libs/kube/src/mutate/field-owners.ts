import { defined, type ApiObject } from "@konverge/core";
import { formatFieldPath, ownedPaths } from "./managed-fields.ts";

/** The owner of a field, as reported by the API server. */
export interface FieldOwner {
  /** For example `spec.ports[name=web].port`. */
  readonly path: string;
  readonly manager: string;
  /** `Apply` or `Update`. */
  readonly operation: string;
  /** Absent for the object itself. */
  readonly subresource?: string;
  /** Last write of the manager under this entry, not of this field alone. ISO 8601, to the second. */
  readonly at?: string;
}

/** Returns the owners by path; a shared field has several entries. Selectors of sensitive kinds are omitted (P12). */
export function listFieldOwners(
  object: ApiObject,
  { sensitive }: { readonly sensitive: boolean },
): FieldOwner[] {
  const owners = (object.metadata.managedFields ?? []).flatMap(
    ({ manager = "unknown", operation = "", subresource, time, fieldsV1 }) =>
      ownedPaths(fieldsV1).map((path) => ({
        path: formatFieldPath(path, { sensitive }),
        manager,
        operation,
        ...(subresource === undefined || subresource === "" ? {} : { subresource }),
        ...defined({ at: time }),
      })),
  );
  return owners.toSorted((one, other) =>
    one.path < other.path ? -1 : Number(one.path > other.path),
  );
}
