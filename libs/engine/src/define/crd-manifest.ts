import { KonvergeError, type ApiObject, type JsonObject } from "@konverge/core";
import type { z } from "zod";
import { toStructuralSchema, withoutRequired } from "./crd-schema.ts";
import { toColumn, type PrinterColumn } from "./printer-column.ts";

/** What an API version of a resource holds. */
interface VersionSchemas {
  readonly version: string;
  readonly spec: z.ZodType;
  /** Its presence turns the status subresource on. */
  readonly status?: z.ZodType;
  readonly printerColumns?: readonly PrinterColumn[];
}

/** A further version of the same objects, beside the one that controllers use. */
export interface OtherVersion extends VersionSchemas {
  /** Default true. False while objects may still be stored in it, but nobody may ask for it any more. */
  readonly served?: boolean;
  /** Whoever uses it is warned; text is what they are told. */
  readonly deprecated?: boolean | string;
}

interface CrdNames {
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
}

export interface CrdInput {
  readonly group: string;
  readonly scope: "Namespaced" | "Cluster";
  readonly names: CrdNames;
  readonly main: VersionSchemas;
  readonly others: readonly OtherVersion[];
  /** Name of the version that objects are stored in. */
  readonly storage: string;
}

/**
 * The CustomResourceDefinition. The API server converts between versions by changing `apiVersion` alone.
 * @throws KonvergeError `invalid_config`, naming the field, for what a CRD cannot express
 */
export function makeCrd(input: CrdInput): ApiObject & { spec: JsonObject } {
  const { group, scope, names, main, others, storage } = input;
  const { kind, plural, singular, shortNames, categories } = names;
  const all = [{ ...main, served: true }, ...others];
  requireDistinct(kind, all, storage);
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope,
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular,
        ...(shortNames.length > 0 ? { shortNames: [...shortNames] } : {}),
        ...(categories.length > 0 ? { categories: [...categories] } : {}),
      },
      versions: all.map((version) => makeVersion(kind, version, storage)),
    },
  };
}

function requireDistinct(kind: string, versions: readonly VersionSchemas[], storage: string): void {
  const names = versions.map(({ version }) => version);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) {
    throw new KonvergeError("invalid_config", `${kind}: version ${twice} is there twice`);
  }
  if (!names.includes(storage)) {
    throw new KonvergeError(
      "invalid_config",
      `${kind}: storage "${storage}" is not among its versions: ${names.join(", ")}`,
    );
  }
}

function makeVersion(kind: string, version: OtherVersion, storage: string): JsonObject {
  const { version: name, status, served = true, deprecated = false, printerColumns = [] } = version;
  const schema = objectSchema(kind, version);
  return {
    name,
    served,
    storage: name === storage,
    ...(deprecated === false ? {} : { deprecated: true }),
    ...(typeof deprecated === "string" ? { deprecationWarning: deprecated } : {}),
    schema: { openAPIV3Schema: schema },
    ...(status === undefined ? {} : { subresources: { status: {} } }),
    ...(printerColumns.length === 0
      ? {}
      : { additionalPrinterColumns: printerColumns.map((each) => toColumn(each, schema, kind)) }),
  };
}

function objectSchema(kind: string, { spec: written, status }: VersionSchemas): JsonObject {
  const spec = toStructuralSchema(written, `${kind}.spec`);
  // Defaults inside of a missing spec are applied only when the spec itself has one.
  const specMayBeEmpty = written.safeParse({}).success;
  return {
    type: "object",
    properties: {
      apiVersion: { type: "string" },
      kind: { type: "string" },
      metadata: { type: "object" },
      spec: specMayBeEmpty ? { ...spec, default: {} } : spec,
      ...(status === undefined
        ? {}
        : { status: withoutRequired(toStructuralSchema(status, `${kind}.status`)) }),
    },
    ...(specMayBeEmpty ? {} : { required: ["spec"] }),
  };
}
