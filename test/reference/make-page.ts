import { readDeclarations, type Declaration, type Member } from "./read-declarations.ts";

export interface Page {
  readonly title: string;
  /** The first paragraph: the tasks that the page supports. */
  readonly intro: string;
  /** Declarations as `<folder>:<name>`, in the order of the page; a prefix is shown before members. */
  readonly of: readonly {
    readonly from: string;
    readonly name: string;
    readonly prefix?: string;
  }[];
}

const WIDTH = 118;
const NOTICE = "<!-- Made from the docstrings by test/reference. Do not edit. -->";
const folders = new Map<string, ReadonlyMap<string, Declaration>>();

/** Returns a page of the reference as Markdown. */
export function makePage({ title, intro, of }: Page): string {
  const parts = of.map(({ from, name, prefix = "" }) => {
    const declarations = folders.get(from) ?? readDeclarations(from);
    folders.set(from, declarations);
    const declaration = declarations.get(name);
    if (declaration === undefined) throw new Error(`${from} exports no ${name}`);
    return sectionOf(declaration, prefix);
  });
  return `${[NOTICE, `# ${title}`, wrap(intro, ""), ...parts].join("\n\n")}\n`;
}

function sectionOf({ name, doc, signature, members }: Declaration, prefix: string): string {
  return [
    `## ${name}`,
    fence(signature),
    ...textOf(doc, ""),
    ...members.map((member) => memberText(member, prefix)),
  ].join("\n\n");
}

function memberText({ name, doc, signature }: Member, prefix: string): string {
  const isCall = signature.includes("(") || signature.includes("\n");
  if (isCall) return [`### ${prefix}${name}`, fence(signature), ...textOf(doc, "")].join("\n\n");
  return [`### ${prefix}${name}`, `\`${signature}\``, ...textOf(doc, "")].join("\n\n");
}

function fence(code: string): string {
  return `\`\`\`ts\n${code}\n\`\`\``;
}

/** Formats a docstring: paragraphs, lists, examples and errors. */
function textOf(doc: string, indent: string): readonly string[] {
  if (doc === "") return [];
  const [text = "", ...tags] = `\n${doc}`.split(/\s(?=@(?:throws|example)\b)/);
  const paragraphs = text
    .trim()
    .split(/\n\s*\n/)
    .map((each) => wrap(linked(each), indent));
  return [...paragraphs, ...tags.map(tagText)].filter((each) => each !== "");
}

function tagText(tag: string): string {
  const example = /^@example\s*(.*)$/s.exec(tag)?.[1];
  if (example !== undefined) return fence(example.trim());
  return wrap(`Throws ${linked(tag.replace(/^@throws\s*/, ""))}`, "");
}

function linked(text: string): string {
  return text.replaceAll(/\{@link ([^}|]+)\}/g, "`$1`");
}

function wrap(text: string, indent: string): string {
  const lines: string[] = [];
  let line = indent;
  for (const word of text.split(/\s+/).filter((each) => each !== "")) {
    if (line.trim() !== "" && line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = indent;
    }
    line = line.trim() === "" ? indent + word : `${line} ${word}`;
  }
  return [...lines, line].join("\n").trim() === "" ? "" : [...lines, line].join("\n");
}
