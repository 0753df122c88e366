import { KonvergeError, type ApiObject, type JsonObject, type ResourceType } from "@konverge/core";
import { z } from "zod";
import { toStructuralSchema, withoutRequired } from "./crd-schema.ts";

/** An object of a resource made by {@link defineResource}. In a status every field may be missing. */
export interface CustomObject<Spec, Status> extends ApiObject {
  spec: Spec;
  status?: Partial<Status>;
}

/** A resource with its zod schemas: the types, the CRD and the start-up check all come from here. */
export interface Resource<Spec = unknown, Status = unknown> extends ResourceType<
  CustomObject<Spec, Status>
> {
  readonly singular: string;
  readonly shortNames: readonly string[];
  /** The CustomResourceDefinition to apply. */
  crd(): ApiObject & { spec: JsonObject };
}

export interface ResourceDefinition<Spec extends z.ZodType, Status extends z.ZodType> {
  /** API group, for example `demo.konverge.dev`. */
  readonly group: string;
  /** For example `v1`. */
  readonly version: string;
  /** CamelCase and singular, for example `NodePool`. */
  readonly kind: string;
  /** Plural in URLs. Default: the lower-case kind with an English plural. */
  readonly plural?: string;
  readonly shortNames?: readonly string[];
  /** Default `Namespaced`. */
  readonly scope?: "Namespaced" | "Cluster";
  readonly spec: Spec;
  /** Its presence turns the status subresource on. */
  readonly status?: Status;
  /** True when its objects hold secrets: then they are treated as Secrets are, in records, logs, errors and lanes. */
  readonly sensitive?: boolean;
}

/** The field's standard list of conditions, merged by type. */
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
const KIND = /^[A-Z][A-Za-z0-9]*$/;

/**
 * Defines a custom resource once: its types, its CRD manifest, its start-up check.
 * @throws KonvergeError `invalid_config`, naming the field.
 */
export function defineResource<Spec extends z.ZodType, Status extends z.ZodType = z.ZodNever>(
  definition: ResourceDefinition<Spec, Status>,
): Resource<z.output<Spec>, z.output<Status>> {
  const { group, version, kind, scope = "Namespaced", shortNames = [] } = definition;
  requireMatch("group", group, GROUP, "example.com");
  requireMatch("version", version, VERSION, "v1, v1beta1");
  requireMatch("kind", kind, KIND, "NodePool");
  const resource = definition.plural ?? pluralOf(kind);
  const singular = kind.toLowerCase();
  const schema = objectSchema(definition);
  return {
    group,
    version,
    kind,
    resource,
    scope,
    singular,
    shortNames,
    ...(definition.sensitive === true ? { sensitive: true } : {}),
    crd: () => ({
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: `${resource}.${group}` },
      spec: {
        group,
        scope,
        names: {
          kind,
          listKind: `${kind}List`,
          plural: resource,
          singular,
          ...(shortNames.length > 0 ? { shortNames: [...shortNames] } : {}),
        },
        versions: [
          {
            name: version,
            served: true,
            storage: true,
            schema: { openAPIV3Schema: schema },
            ...(definition.status === undefined ? {} : { subresources: { status: {} } }),
          },
        ],
      },
    }),
  };
}

function objectSchema(definition: ResourceDefinition<z.ZodType, z.ZodType>): JsonObject {
  const spec = toStructuralSchema(definition.spec, `${definition.kind}.spec`);
  // Defaults inside of a missing spec are applied only when the spec itself has one.
  const specMayBeEmpty = definition.spec.safeParse({}).success;
  return {
    type: "object",
    properties: {
      apiVersion: { type: "string" },
      kind: { type: "string" },
      metadata: { type: "object" },
      spec: specMayBeEmpty ? { ...spec, default: {} } : spec,
      ...(definition.status === undefined
        ? {}
        : {
            status: withoutRequired(
              toStructuralSchema(definition.status, `${definition.kind}.status`),
            ),
          }),
    },
    ...(specMayBeEmpty ? {} : { required: ["spec"] }),
  };
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
      `defineResource: ${field} "${value}" is not valid; write it like ${example}`,
    );
  }
}
