import type { FoundObject } from "./live-cards.tsx";

type Owner = FoundObject["fieldOwners"][number];

/** A line of an object as YAML. */
export interface YamlLine {
  readonly text: string;
  /** The managers of the field, as the API server reports them. Empty for a parent of owned fields. */
  readonly owners: readonly Owner[];
}

/** Returns an object as YAML, each line with the owners of its field. */
export function yamlLines(
  object: Readonly<Record<string, unknown>>,
  fieldOwners: readonly Owner[],
): YamlLine[] {
  const owners = Map.groupBy(fieldOwners, ({ path }) => path);
  const lines: YamlLine[] = [];
  writeMembers(object, { path: "", indent: "", inherited: [] }, { owners, lines });
  return lines;
}

interface Place {
  readonly path: string;
  readonly indent: string;
  /** Owners of the closest owned parent: they own the whole value. */
  readonly inherited: readonly Owner[];
}

interface Output {
  readonly owners: ReadonlyMap<string, readonly Owner[]>;
  readonly lines: YamlLine[];
}

function writeMembers(
  members: Readonly<Record<string, unknown>>,
  { path, indent, inherited }: Place,
  output: Output,
  first = indent,
): void {
  let start = first;
  for (const [name, value] of Object.entries(members)) {
    const below = path === "" ? name : `${path}.${name}`;
    writeField(`${start}${keyText(name)}:`, value, { path: below, indent, inherited }, output);
    start = indent;
  }
}

function writeField(head: string, value: unknown, place: Place, output: Output): void {
  const owners = output.owners.get(place.path) ?? place.inherited;
  const below = { ...place, inherited: owners };
  const inline = scalarText(value, place.indent);
  if (inline !== undefined) {
    const [one = "", ...others] = inline.split("\n");
    output.lines.push({ text: `${head} ${one}`, owners });
    output.lines.push(...others.map((text) => ({ text, owners })));
    return;
  }
  output.lines.push({ text: head, owners });
  if (Array.isArray(value)) writeItems(value, below, output);
  else {
    const members = value as Readonly<Record<string, unknown>>;
    writeMembers(members, { ...below, indent: `${place.indent}  ` }, output);
  }
}

function writeItems(items: readonly unknown[], place: Place, output: Output): void {
  const selectors = selectorsBelow(place.path, output.owners);
  for (const [index, item] of items.entries()) {
    const path = `${place.path}[${selectorOf(item, selectors) ?? index}]`;
    const owners = output.owners.get(path) ?? place.inherited;
    const head = `${place.indent}- `;
    const inline = scalarText(item, `${place.indent}  `);
    if (inline !== undefined) {
      output.lines.push(...`${head}${inline}`.split("\n").map((text) => ({ text, owners })));
    } else if (Array.isArray(item)) {
      output.lines.push({ text: head.trimEnd(), owners });
      writeItems(item, { path, indent: `${place.indent}  `, inherited: owners }, output);
    } else {
      const members = item as Readonly<Record<string, unknown>>;
      writeMembers(members, { path, indent: `${place.indent}  `, inherited: owners }, output, head);
    }
  }
}

/** The selectors of elements with owned fields, such as `name=web`. */
function selectorsBelow(path: string, owners: Output["owners"]): readonly string[] {
  const start = `${path}[`;
  const found = [...owners.keys()]
    .filter((each) => each.startsWith(start))
    .map((each) => each.slice(start.length, each.indexOf("]", start.length)));
  return [...new Set(found)];
}

function selectorOf(item: unknown, selectors: readonly string[]): string | undefined {
  return selectors.find((selector) => {
    if (typeof item !== "object" || item === null) return selector === String(item);
    return selector.split(",").every((pair) => {
      const at = pair.indexOf("=");
      const value = (item as Readonly<Record<string, unknown>>)[pair.slice(0, at)];
      return at > 0 && String(value) === pair.slice(at + 1);
    });
  });
}

/** Texts that YAML reads as another type, or that have characters with a meaning. */
const PLAIN = /^[A-Za-z_/][\w./@:-]*(?: [\w./@()=+-]+)*$/;
const WORDS = /^(true|false|null|yes|no|on|off|y|n)$/i;

/** Returns the value in one line, or as a block of lines; undefined for objects and lists with content. */
function scalarText(value: unknown, indent: string): string | undefined {
  if (typeof value === "string") {
    if (value.includes("\n") && !/^\s|[^\S\n]\n|\t/.test(value)) {
      const lines = value.replace(/\n$/, "").split("\n");
      const mark = value.endsWith("\n") ? "|" : "|-";
      return [mark, ...lines.map((line) => (line === "" ? "" : `${indent}  ${line}`))].join("\n");
    }
    const isPlain = PLAIN.test(value) && !WORDS.test(value) && !/: |:$/.test(value);
    return isPlain ? value : JSON.stringify(value);
  }
  if (Array.isArray(value)) return value.length === 0 ? "[]" : undefined;
  if (typeof value === "object" && value !== null) {
    return Object.keys(value).length === 0 ? "{}" : undefined;
  }
  return JSON.stringify(value);
}

function keyText(name: string): string {
  return /^[A-Za-z_][\w./-]*$/.test(name) && !WORDS.test(name) ? name : JSON.stringify(name);
}
