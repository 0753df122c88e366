import type { CrdKind } from "./crd-schema.ts";
import { docstring, paragraphsOf } from "./docstring.ts";
import {
  headOf,
  idOf,
  nameKinds,
  OF_ALL_OBJECTS,
  PACKAGE,
  resourceTypeOf,
  type NamedKind,
} from "./kind-names.ts";
import { membersOf } from "./schema-type.ts";

/** Names that the file uses itself. */
const TAKEN = ["ApiObject", "ResourceType", "Partial"];

/**
 * Returns a TypeScript module with a type and a `ResourceType` of the same name for each kind.
 * @param command the command that made the file, for its first line
 * @throws KonvergeError `invalid_request` if two kinds have the same name
 */
export function makeTypeFile(kinds: readonly CrdKind[], command: string): string {
  const named = nameKinds(kinds, ({ name }) => [name], TAKEN);
  const imports = `import type { ApiObject, ResourceType } from ${JSON.stringify(PACKAGE)};`;
  return [`${headOf(command)}\n${imports}`, ...named.map(declarationsOf)].join("\n\n");
}

function declarationsOf(named: NamedKind): string {
  const { name, kind } = named;
  const { version, schema } = kind;
  const description = [...paragraphsOf(schema.description), `${idOf(kind)}, version ${version}`];
  const members = membersOf(schema, "  ", OF_ALL_OBJECTS);
  const body = members.length === 0 ? "{}" : `{\n${members.join("\n")}\n}`;
  return `${docstring(description, "")}export interface ${name} extends ApiObject ${body}

${resourceTypeOf(named)}`;
}
