import {
  cloneJson,
  formatApiVersion,
  jsonEquals,
  type JsonObject,
  subdomainErrors,
} from "@konverge/core";
import { EMPTY_FIELDS, fieldSetOf, type FieldSet } from "../fields/field-set.ts";
import { generationOf, metadataOf, setOrDelete } from "../objects/metadata.ts";
import { unqualifiedFinalizerErrors } from "../objects/finalizer-rules.ts";
import { blankObject } from "../schema/blank-object.ts";
import { builtinSchema } from "../schema/builtin-schemas.ts";
import { decodeBuiltin } from "../schema/decode-builtin.ts";
import type { ResourceKind, Subresource } from "./resource-kind.ts";

/** The required properties of a built-in kind; the others have the defaults of most kinds. */
export interface BuiltinKindOptions extends Partial<
  Omit<ResourceKind, "blank" | "decode" | "isCustom" | "resetFields" | "schema" | "subresources">
> {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly resource: string;
  /** Name in the table of definitions. */
  readonly definition: string;
  readonly subresources?: readonly Subresource[];
  /** Members that Go writes even if they are unset, in addition to those with a default in the schema. */
  readonly blankMembers?: JsonObject;
  /** Sets defaults, including those of Go's conversion during decoding. */
  readonly applyDefaults?: (object: JsonObject) => void;
  /** Members that count for the generation. If absent, the kind has none. */
  readonly generationOf?: (object: JsonObject) => unknown;
  /** True: a client may create an object with its status. */
  readonly createsStatus?: boolean;
  /** Members of metadata that a status write keeps from the live object. */
  readonly statusKeepsMetadata?: readonly string[];
}

/** Creates a kind that is built into kube-apiserver. */
export function defineBuiltinKind(options: BuiltinKindOptions): ResourceKind {
  const schema = builtinSchema(options.definition);
  const subresources = new Set<Subresource>(options.subresources);
  const hasStatus = subresources.has("status");
  const { applyDefaults, generationOf: generationFields, statusKeepsMetadata = [] } = options;
  const mainReset = hasStatus ? fieldSetOf([["f:status"]]) : EMPTY_FIELDS;
  const statusReset = fieldSetOf([
    ["f:spec"],
    ...statusKeepsMetadata.map((name) => ["f:metadata", `f:${name}`]),
  ]);
  return {
    listKind: `${options.kind}List`,
    singular: options.kind.toLowerCase(),
    shortNames: [],
    categories: [],
    namespaced: true,
    storageApiVersion: formatApiVersion(options.group, options.version),
    scale: undefined,
    createsOnUpdate: false,
    updatesUnconditionally: true,
    printerColumns: [],
    returnsDeleted: false,
    deletesDependentsByDefault: true,
    selectableFields: [],
    nameErrors: subdomainErrors,
    view: (stored) => stored,
    toStorage: (object) => object,
    ...options,
    validateCreate: (object) => [
      ...unqualifiedFinalizerErrors(object),
      ...(options.validateCreate?.(object) ?? []),
    ],
    validateUpdate: (next, live, subresource, warnings) => [
      ...unqualifiedFinalizerErrors(next),
      ...(options.validateUpdate?.(next, live, subresource, warnings) ?? []),
    ],
    isCustom: false,
    schema,
    blank: {
      ...blankObject(schema),
      ...options.blankMembers,
      apiVersion: formatApiVersion(options.group, options.version),
      kind: options.kind,
    },
    subresources,
    decode: (object) => {
      const unknown = decodeBuiltin(schema, object);
      applyDefaults?.(object);
      return unknown;
    },
    resetFields: (subresource): FieldSet => {
      if (subresource === "status") return statusReset;
      return subresource === "" ? mainReset : EMPTY_FIELDS;
    },
    prepareCreate: (object) => {
      if (hasStatus && options.createsStatus !== true) delete object["status"];
      if (generationFields !== undefined) metadataOf(object)["generation"] = 1;
      options.prepareCreate?.(object);
    },
    prepareUpdate: (next, live, subresource) => {
      if (subresource === "status") keepOutsideStatus(next, live, statusKeepsMetadata);
      else if (hasStatus) setOrDelete(next, "status", live["status"]);
      options.prepareUpdate?.(next, live, subresource);
      const isChanged =
        subresource !== "status" &&
        generationFields !== undefined &&
        !jsonEquals(generationFields(next), generationFields(live));
      if (isChanged) metadataOf(next)["generation"] = generationOf(live) + 1;
    },
  };
}

function keepOutsideStatus(
  next: JsonObject,
  live: JsonObject,
  metadataFields: readonly string[],
): void {
  setOrDelete(next, "spec", live["spec"] === undefined ? undefined : cloneJson(live["spec"]));
  for (const name of metadataFields) setOrDelete(metadataOf(next), name, metadataOf(live)[name]);
}
