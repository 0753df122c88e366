import { KonvergeError, type ApiObject, type JsonObject } from "@konverge/core";
import type { z } from "zod";
import { checkRules } from "./check-rules.ts";
import { toStructuralSchema, withoutRequired } from "./crd-schema.ts";
import { toColumn, type PrinterColumn } from "./printer-column.ts";

/** The schemas of one API version of a resource. */
interface VersionSchemas {
  readonly version: string;
  readonly spec: z.ZodType;
  /** Enables the status subresource. */
  readonly status?: z.ZodType;
  readonly printerColumns?: readonly PrinterColumn[];
}

/** Another API version of the same objects, in addition to the version that controllers use. */
export interface OtherVersion extends VersionSchemas {
  /** Default true. False for a version that is no longer available to clients, but may still be stored. */
  readonly served?: boolean;
  /** Warns clients of this version; a string is the text of the warning. */
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
  /** Name of the storage version. */
  readonly storage: string;
}

/**
 * Builds the CustomResourceDefinition. To convert between versions, the API server changes only `apiVersion`.
 * @throws KonvergeError `invalid_config` with the field, for schemas that a CRD cannot express
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
    throw new KonvergeError("invalid_config", `${kind}: version ${twice} is defined twice`);
  }
  if (!names.includes(storage)) {
    throw new KonvergeError(
      "invalid_config",
      `${kind}: storage "${storage}" is not one of its versions: ${names.join(", ")}`,
    );
  }
}

function makeVersion(kind: string, version: OtherVersion, storage: string): JsonObject {
  const { version: name, status, served = true, deprecated = false, printerColumns = [] } = version;
  const schema = objectSchema(kind, version);
  checkRules(schema, kind);
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
  // Defaults in a missing spec apply only if the spec itself has a default.
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
