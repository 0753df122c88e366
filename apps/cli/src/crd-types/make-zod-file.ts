import { formatApiVersion } from "@konverge/core";
import type { CrdKind, CrdSchema } from "./crd-schema.ts";
import { docstring, paragraphsOf } from "./docstring.ts";
import {
  headOf,
  idOf,
  nameKinds,
  OF_ALL_OBJECTS,
  PACKAGE,
  pascalCase,
  resourceTypeOf,
  type NamedKind,
} from "./kind-names.ts";
import { keyOf } from "./literal.ts";
import { keepsUnknown } from "./schema-type.ts";
import { block, checksOf, commentOf, isOptional, zodOf } from "./zod-expression.ts";

/** Names that the file uses itself. */
const TAKEN = ["ApiObject", "ResourceType"];
const METADATA = `/** The metadata that a manifest contains. */
const metadata = z.looseObject({
  name: z.string(),
  namespace: z.string().exactOptional(),
  labels: z.record(z.string(), z.string()).exactOptional(),
  annotations: z.record(z.string(), z.string()).exactOptional(),
});
`;

/** A field of a kind besides those of all objects. Its schema has a declaration of its own. */
interface RootField {
  readonly field: string;
  /** Name of its schema and type. */
  readonly name: string;
  readonly schema: CrdSchema;
  readonly isOptional: boolean;
}

/**
 * Returns a TypeScript module with zod schemas for each kind: one for the object, and one for each field such as `spec`. Types
 * and a `ResourceType` are declared from them.
 * @param command the command that made the file, for its first line
 * @throws KonvergeError `invalid_request` if two declarations have the same name
 */
export function makeZodFile(kinds: readonly CrdKind[], command: string): string {
  const named = nameKinds(kinds, namesOf, TAKEN);
  const declarations = named.map(declarationsOf);
  const body = declarations.join("\n");
  const used = ["keywords", "rule"].filter((name) => body.includes(`${name}(`));
  const names = [...used, "type ApiObject", "type ResourceType"].join(", ");
  const imports =
    used.length === 0
      ? `import type { ApiObject, ResourceType } from ${JSON.stringify(PACKAGE)};`
      : `import { ${names} } from ${JSON.stringify(PACKAGE)};`;
  return [`${headOf(command)}\n${imports}\nimport { z } from "zod";`, METADATA + "\n" + body].join(
    "\n\n",
  );
}

const namesOf = ({ name, kind }: NamedKind): string[] => [
  name,
  `${name}Schema`,
  ...rootFieldsOf(name, kind).map((field) => field.name),
];

function rootFieldsOf(name: string, { schema }: CrdKind): RootField[] {
  return Object.entries(schema.properties ?? {})
    .filter(([field]) => !OF_ALL_OBJECTS.includes(field))
    .map(([field, property]) => ({
      field,
      name: `${name}${pascalCase(field)}`,
      schema: property,
      isOptional: isOptional(property, (schema.required ?? []).includes(field)),
    }));
}

function declarationsOf(named: NamedKind): string {
  const { name, kind } = named;
  const { group, version, schema } = kind;
  const fields = rootFieldsOf(name, kind);
  const description = [...paragraphsOf(schema.description), `${idOf(kind)}, version ${version}`];
  const members = fields.map(
    (field) =>
      `  ${keyOf(field.field)}${field.isOptional ? `?: ${field.name} | undefined` : `: ${field.name}`};`,
  );
  if (keepsUnknown(schema)) members.push("  [field: string]: unknown;");
  const body = members.length === 0 ? "{}" : `{\n${members.join("\n")}\n}`;
  const shape = [
    `  apiVersion: z.literal(${JSON.stringify(formatApiVersion(group, version))}),`,
    `  kind: z.literal(${JSON.stringify(kind.kind)}),`,
    "  metadata,",
    ...fields.map(
      (field) => `  ${keyOf(field.field)}: ${field.name}${field.isOptional ? ".optional()" : ""},`,
    ),
  ];
  const object = block(keepsUnknown(schema) ? "looseObject" : "object", shape, "");
  return `${fields.map(fieldDeclaration).join("")}/** Parses an object of the kind ${kind.kind}, for example a manifest. */
export const ${name}Schema = ${object}${checksOf(schema, [], "")};

${docstring(description, "")}export interface ${name} extends ApiObject ${body}

${resourceTypeOf(named)}`;
}

function fieldDeclaration({ name, schema }: RootField): string {
  return `${docstring(commentOf(schema), "")}export const ${name} = ${zodOf(schema, "")};
export type ${name} = z.output<typeof ${name}>;

`;
}
