import { formatApiVersion, type ApiObject, type ResourceType } from "@konverge/core";

/**
 * Returns a kind whose objects have only metadata: the API server sends nothing else (PartialObjectMetadata).
 * @example kube.list(onlyMetadata(Secret), { ownedBy: object })
 */
export function onlyMetadata(type: ResourceType): ResourceType {
  return { ...type, keep: "metadata" };
}

/**
 * Returns a kind whose objects are reduced to a part. `part` must keep the structure of the object. If its result has no
 * metadata, the metadata without managedFields is added.
 * @example const PodNode = onlyPart(Pod, ({ spec }) => ({ spec: { nodeName: spec?.nodeName } }));
 */
export function onlyPart<T extends ApiObject, Part extends object>(
  type: ResourceType<T>,
  part: (object: T) => Part,
): ResourceType<ApiObject & Part> {
  const { objectType: _whole, ...rest } = type;
  return { ...rest, keep: part };
}

/** Marks an object that is a part of one. Spreading copies the mark; JSON omits it. */
const IS_PART: unique symbol = Symbol.for("konverge.part");

/** True if the object is only a part of one, so that a PUT of it would delete the rest. */
export function isPart(object: object): boolean {
  return Object.hasOwn(object, IS_PART);
}

/** Reduces an object from the API server to the part that its type keeps. */
export function partOf<T>(type: ResourceType, object: T): T;
export function partOf(type: ResourceType, object: ApiObject): ApiObject {
  const { keep } = type;
  if (keep === undefined) return object;
  const apiVersion = formatApiVersion(type.group, type.version);
  const identity = { [IS_PART]: true, apiVersion, kind: type.kind };
  if (keep === "metadata") return { ...identity, metadata: object.metadata };
  const part = keep(object) as Partial<ApiObject>;
  return { ...part, ...identity, metadata: part.metadata ?? withoutManagedFields(object).metadata };
}

/** Field managers are often the largest part of an object's metadata. */
export function withoutManagedFields<T extends ApiObject>(object: T): T {
  if (object.metadata.managedFields === undefined) return object;
  const { managedFields: _managers, ...metadata } = object.metadata;
  return { ...object, metadata };
}

const METADATA = "g=meta.k8s.io;v=v1";

/** The `Accept` header for the kept part; undefined for whole objects. A server without this form sends whole objects. */
export function acceptOf({ keep }: ResourceType, isList: boolean): string | undefined {
  if (keep !== "metadata") return undefined;
  const form = isList ? "PartialObjectMetadataList" : "PartialObjectMetadata";
  return `application/json;as=${form};${METADATA},application/json`;
}
