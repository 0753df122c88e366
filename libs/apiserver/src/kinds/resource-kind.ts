import type { JsonObject } from "@konverge/core";
import type { FieldError } from "../errors/field-error.ts";
import type { GroupResource } from "../errors/status-error.ts";
import type { FieldSet } from "../fields/field-set.ts";
import type { PrinterColumn } from "./crd-spec.ts";
import type { Schema } from "../schema/schema.ts";

/** The target of a write: the object itself (empty) or one of its subresources. */
export type Subresource = "" | "eviction" | "finalize" | "scale" | "status";

/** Paths of the values of a scale subresource, as dotted paths without a leading dot. */
export interface ScalePaths {
  readonly specReplicas: string;
  readonly statusReplicas: string;
  /** Absent: the scale has no selector. */
  readonly labelSelector?: string;
}

/**
 * One kind in one API version: its names, its schema and the rules of its strategy. The verbs are the same for all
 * kinds; the differences are here. Functions change their objects in place.
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
  /** Name of a built-in kind in the table of definitions. */
  readonly definition?: string;
  /** Schema of the whole object. */
  readonly schema: Schema;
  /** An object without any set field: the base of an object that is being created. */
  readonly blank: JsonObject;
  /** Resource under which objects are stored, if several groups share them. */
  readonly storedAs?: GroupResource;
  /** API version in which objects are stored. */
  readonly storageApiVersion: string;
  readonly subresources: ReadonlySet<Subresource>;
  readonly scale: ScalePaths | undefined;
  /** PUT of a missing name creates the object. */
  readonly createsOnUpdate: boolean;
  /** PUT without a resourceVersion overwrites. */
  readonly updatesUnconditionally: boolean;
  /** Fields besides name and namespace that a field selector may use, as dotted paths. */
  readonly selectableFields: readonly string[];
  /** Columns of a custom resource's definition. */
  readonly printerColumns: readonly PrinterColumn[];
  /** The response of a deletion is the object. */
  readonly returnsDeleted: boolean;
  /** False: a deletion without a policy orphans dependents. */
  readonly deletesDependentsByDefault: boolean;
  readonly nameErrors: (name: string, isPrefix: boolean) => string[];
  /** Prunes a body and sets its defaults; returns paths of unknown fields. @throws DecodeError for a wrong type */
  readonly decode: (object: JsonObject) => string[];
  /** Fields that clients cannot set through an endpoint. */
  readonly resetFields: (subresource: Subresource) => FieldSet;
  readonly prepareCreate: (object: JsonObject) => void;
  readonly prepareUpdate: (next: JsonObject, live: JsonObject, subresource: Subresource) => void;
  readonly validateCreate: (object: JsonObject) => FieldError[];
  readonly validateUpdate: (
    next: JsonObject,
    live: JsonObject,
    subresource: Subresource,
    /** Receives violations that are only reported. */
    warnings: string[],
  ) => FieldError[];
  /** Converts a stored object to this version. Does not change its argument. */
  readonly view: (stored: JsonObject) => JsonObject;
  /** Converts an object of this version to its stored form. */
  readonly toStorage: (object: JsonObject) => JsonObject;
  /**
   * Returns the seconds between the deletion of an object and its removal, by another program. If absent, an object is
   * removed at once.
   */
  readonly gracePeriodSeconds?: (object: JsonObject, requested: number | undefined) => number;
  /** Marks the object for deletion instead of removing it; a later write removes it. */
  readonly prepareDelete?: (object: JsonObject) => void;
}
