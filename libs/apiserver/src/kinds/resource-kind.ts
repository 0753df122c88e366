import type { JsonObject } from "@konverge/core";
import type { FieldError } from "../errors/field-error.ts";
import type { GroupResource } from "../errors/status-error.ts";
import type { FieldSet } from "../fields/field-set.ts";
import type { Schema } from "../schema/schema.ts";

/** What is written to: the object itself (empty) or one of its subresources. */
export type Subresource = "" | "finalize" | "scale" | "status";

/** Where a scale subresource finds its numbers, as dotted paths without a leading dot. */
export interface ScalePaths {
  readonly specReplicas: string;
  readonly statusReplicas: string;
  /** Absent: the scale has no selector. */
  readonly labelSelector?: string;
}

/**
 * One kind as one API version serves it: its names, its schema and the rules of its strategy. The verbs are the same for
 * all kinds; what differs stands here. Functions change the objects they are given in place.
 */
export interface ResourceKind extends GroupResource {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly listKind: string;
  /** Plural, as in the URL. */
  readonly resource: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  readonly isCustom: boolean;
  /** Schema of the whole object. */
  readonly schema: Schema;
  /** An object of which nothing is set: what an object that is being created replaces. */
  readonly blank: JsonObject;
  /** Resource under which objects are stored, where several groups show the same ones. */
  readonly storedAs?: GroupResource;
  /** API version in which objects are stored. */
  readonly storageApiVersion: string;
  readonly subresources: ReadonlySet<Subresource>;
  readonly scale: ScalePaths | undefined;
  /** PUT of a name that does not exist creates it. */
  readonly createsOnUpdate: boolean;
  /** PUT without a resourceVersion overwrites. */
  readonly updatesUnconditionally: boolean;
  /** Fields beside name and namespace that a field selector may name, as dotted paths. */
  readonly selectableFields: readonly string[];
  readonly nameErrors: (name: string, isPrefix: boolean) => string[];
  /** Reads a body: prunes, fills in defaults; returns paths of unknown fields. @throws DecodeError for a wrong type */
  readonly decode: (object: JsonObject) => string[];
  /** Fields that an endpoint does not let clients set. */
  readonly resetFields: (subresource: Subresource) => FieldSet;
  readonly prepareCreate: (object: JsonObject) => void;
  readonly prepareUpdate: (next: JsonObject, live: JsonObject, subresource: Subresource) => void;
  readonly validateCreate: (object: JsonObject) => FieldError[];
  readonly validateUpdate: (
    next: JsonObject,
    live: JsonObject,
    subresource: Subresource,
  ) => FieldError[];
  /** Turns what is stored into what this version shows. The object given is not changed. */
  readonly view: (stored: JsonObject) => JsonObject;
  /** Turns what this version shows into what is stored. */
  readonly toStorage: (object: JsonObject) => JsonObject;
  /** A deletion does not remove the object but marks it: whoever finishes it does so later. */
  readonly prepareDelete?: (object: JsonObject) => void;
}
