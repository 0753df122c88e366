import { formatApiVersion, type ApiObject } from "@konverge/core";
import type { ObjectRef } from "../object-ref.ts";
import type { Reached } from "./verb-scope.ts";

/** What is recorded of an object (P12). */
export function refOf(object: ApiObject, { type, at, cluster }: Reached): ObjectRef {
  const { uid = "", generation, resourceVersion = "" } = object.metadata;
  return {
    ...(cluster === undefined ? {} : { cluster }),
    apiVersion: formatApiVersion(type.group, type.version),
    kind: type.kind,
    ...at,
    uid,
    ...(generation === undefined ? {} : { generation }),
    resourceVersion,
  };
}
