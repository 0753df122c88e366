import type { JsonObject } from "@konverge/core";
import { objectOf, objectsOf, textOf } from "../objects/metadata.ts";
import type { Schema } from "../schema/schema.ts";

/** The used parts of a CustomResourceDefinition's spec, which was validated when it was stored. */
export interface CrdSpec {
  readonly group: string;
  readonly scope: "Cluster" | "Namespaced";
  readonly names: {
    readonly plural: string;
    readonly kind: string;
    readonly singular?: string;
    readonly listKind?: string;
    readonly shortNames?: readonly string[];
    readonly categories?: readonly string[];
  };
  readonly versions: readonly CrdVersion[];
  readonly preserveUnknownFields?: boolean;
}

/** A column of `kubectl get`. */
export interface PrinterColumn {
  readonly name: string;
  readonly type: string;
  readonly jsonPath: string;
  readonly format?: string;
  readonly description?: string;
  readonly priority?: number;
}

export interface CrdVersion {
  readonly name: string;
  readonly served: boolean;
  readonly storage: boolean;
  readonly schema?: { readonly openAPIV3Schema?: Schema };
  readonly subresources?: {
    readonly status?: object;
    readonly scale?: {
      readonly specReplicasPath: string;
      readonly statusReplicasPath: string;
      readonly labelSelectorPath?: string;
    };
  };
  readonly selectableFields?: readonly { readonly jsonPath: string }[];
  readonly additionalPrinterColumns?: readonly PrinterColumn[];
}

export const readCrdSpec = (crd: JsonObject): CrdSpec =>
  objectOf(crd, "spec") as unknown as CrdSpec;

/** Returns true if the definition's condition of this type is True. */
export function hasCondition(crd: JsonObject, type: string): boolean {
  return objectsOf(objectOf(crd, "status") ?? {}, "conditions").some(
    (condition) => textOf(condition, "type") === type && condition["status"] === "True",
  );
}
