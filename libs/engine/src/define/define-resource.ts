import {
  defined,
  KonvergeError,
  type ApiObject,
  type JsonObject,
  type ResourceType,
} from "@konverge/core";
import { z } from "zod";
import { makeCrd, type OtherVersion } from "./crd-manifest.ts";
import type { PrinterColumn } from "./printer-column.ts";

/** An object of a resource of {@link defineResource}. All fields of the status are optional. */
export interface CustomObject<Spec, Status> extends ApiObject {
  spec: Spec;
  status?: Partial<Status>;
}

/** A resource with its zod schemas, the source of its types, its CRD and the check at startup. */
export interface Resource<Spec = unknown, Status = unknown> extends ResourceType<
  CustomObject<Spec, Status>
> {
  /** Singular name for kubectl. */
  readonly singular: string;
  /** Short names for kubectl. */
  readonly shortNames: readonly string[];
  /** True if its objects have a status, which is written through the subresource. */
  readonly hasStatus: boolean;
  /** The CustomResourceDefinition to apply. */
  crd(): ApiObject & { spec: JsonObject };
}

/** The definition of a custom resource. */
export interface ResourceDefinition<Spec extends z.ZodType, Status extends z.ZodType> {
  /** API group, for example `demo.konverge.dev`. */
  readonly group: string;
  /** For example `v1`. */
  readonly version: string;
  /** CamelCase and singular, for example `NodePool`. */
  readonly kind: string;
  /** Plural in URLs. Default: the lower-case kind with an English plural. */
  readonly plural?: string;
  /** Default: the lower-case kind. */
  readonly singular?: string;
  /** For `kubectl get np`. */
  readonly shortNames?: readonly string[];
  /** Groups of kinds for `kubectl get <category>`, for example `all`. */
  readonly categories?: readonly string[];
  /** Default `Namespaced`. */
  readonly scope?: "Namespaced" | "Cluster";
  /** The schema of the spec. The API server checks it; objects are not parsed. */
  readonly spec: Spec;
  /** Enables the status subresource. */
  readonly status?: Status;
  /** Columns of `kubectl get` in addition to the name. */
  readonly printerColumns?: readonly PrinterColumn[];
  /**
   * Other API versions of the same objects, with their own schemas. Objects read or written in a version lose fields that are
   * not in its schema.
   */
  readonly versions?: readonly OtherVersion[];
  /** Storage version. Default: `version`. Change it only after all `versions` can represent every object. */
  readonly storage?: string;
  /** Only `none`: the API server changes nothing but `apiVersion`. */
  readonly conversion?: "none";
  /** True if its objects contain secrets. They are then treated as Secrets in records, logs, errors and lanes. */
  readonly sensitive?: boolean;
}

/** The standard list of conditions, merged by type. */
export const conditions = z
  .array(
    z.object({
      type: z.string().max(316),
      status: z.enum(["True", "False", "Unknown"]),
      reason: z.string().min(1).max(1024),
      message: z.string().max(32_768).default(""),
      lastTransitionTime: z.string().meta({ format: "date-time" }),
      observedGeneration: z.int().min(0).optional(),
    }),
  )
  .meta({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"] });

const GROUP = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$/;
const VERSION = /^v[1-9]\d*((alpha|beta)[1-9]\d*)?$/;
const NAME = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;
const KIND = /^[A-Z][A-Za-z0-9]*$/;

/**
 * Defines a custom resource once: its types, its CRD manifest, its check at startup.
 * @throws KonvergeError `invalid_config` with the field
 */
export function defineResource<Spec extends z.ZodType, Status extends z.ZodType = z.ZodNever>(
  definition: ResourceDefinition<Spec, Status>,
): Resource<z.output<Spec>, z.output<Status>> {
  const { group, version, kind, scope = "Namespaced", shortNames = [] } = definition;
  const { categories = [], versions = [], storage = version, printerColumns = [] } = definition;
  requireMatch("group", group, GROUP, "example.com");
  for (const each of [version, ...versions.map((other) => other.version)]) {
    requireMatch("version", each, VERSION, "v1, v1beta1");
  }
  requireMatch("kind", kind, KIND, "NodePool");
  for (const name of [...shortNames, ...categories]) requireMatch("name", name, NAME, "np");
  refuseConversion(kind, definition.conversion);
  const resource = definition.plural ?? pluralOf(kind);
  const singular = definition.singular ?? kind.toLowerCase();
  const { spec, status } = definition;
  const crd = makeCrd({
    group,
    scope,
    names: { kind, plural: resource, singular, shortNames, categories },
    main: { version, spec, printerColumns, ...defined({ status }) },
    others: versions,
    storage,
  });
  return {
    group,
    version,
    kind,
    resource,
    scope,
    singular,
    shortNames,
    hasStatus: status !== undefined,
    ...(definition.sensitive === true ? { sensitive: true } : {}),
    crd: () => structuredClone(crd),
  };
}

function refuseConversion(kind: string, conversion: string = "none"): void {
  if (conversion === "none") return;
  throw new KonvergeError(
    "invalid_config",
    `${kind}: conversion "${conversion}" is not supported, because objects could not be read while its webhook is unavailable; omit it and keep versions that differ in optional fields only, or define a new kind`,
  );
}

function pluralOf(kind: string): string {
  const lower = kind.toLowerCase();
  if (/(s|x|z|ch|sh)$/.test(lower)) return `${lower}es`;
  if (/[^aeiou]y$/.test(lower)) return `${lower.slice(0, -1)}ies`;
  return `${lower}s`;
}

function requireMatch(field: string, value: string, pattern: RegExp, example: string): void {
  if (!pattern.test(value)) {
    throw new KonvergeError(
      "invalid_config",
      `defineResource: ${field} "${value}" is invalid; write it like ${example}`,
    );
  }
}
