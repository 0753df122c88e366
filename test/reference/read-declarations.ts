import { globSync, readFileSync } from "node:fs";

/** An exported declaration with its docstring, as it is in its file. */
export interface Declaration {
  readonly name: string;
  readonly doc: string;
  /** Without `export` and without a body. */
  readonly signature: string;
  readonly members: readonly Member[];
  /** True for a function with its body. */
  readonly isBody?: boolean;
}

export interface Member {
  readonly name: string;
  readonly doc: string;
  readonly signature: string;
}

const START = /^export (?:declare )?(?:async )?(interface|function|type|const) (\w+)/;

/** Reads the exported declarations of a package or folder. Relies on the layout that the formatter gives every file. */
export function readDeclarations(folder: string): ReadonlyMap<string, Declaration> {
  const found = new Map<string, Declaration>();
  for (const file of globSync(`${folder}/**/*.ts`)) {
    if (file.endsWith(".test.ts")) continue;
    const lines = readFileSync(file, "utf8").split("\n");
    for (const [at, line] of lines.entries()) {
      const [, kind = "", name = ""] = START.exec(line) ?? [];
      if (name === "") continue;
      const declared = declarationAt(lines, at, kind, name);
      const overloaded = declared.doc === "" ? found.get(name) : undefined;
      found.set(name, overloaded === undefined ? declared : withOverload(overloaded, declared));
    }
  }
  return found;
}

/** The implementation of an overloaded function is not part of its reference. */
function withOverload(first: Declaration, { signature, isBody }: Declaration): Declaration {
  return isBody ? first : { ...first, signature: `${first.signature}\n${signature}` };
}

function declarationAt(
  lines: readonly string[],
  at: number,
  kind: string,
  name: string,
): Declaration {
  const doc = docAbove(lines, at);
  const rest = lines.slice(at);
  if (kind === "interface") {
    const head = rest.slice(0, rest.findIndex((line) => line.endsWith("{")) + 1).join("\n");
    const body = rest.slice(head.split("\n").length, rest.indexOf("}"));
    const signature = plain(head).replace(/ ?\{$/, "");
    return { name, doc, signature, members: membersOf(body) };
  }
  const end = rest.findIndex((line) =>
    kind === "function"
      ? line.endsWith(" {") || line.endsWith(";")
      : kind === "type"
        ? line.endsWith(";")
        : line.endsWith("=>") || / = [({\w]/.test(line) || line.endsWith(";"),
  );
  const text = plain(rest.slice(0, end + 1).join("\n"));
  const signature = text
    .replace(/(?: \{| =>|;)$/, "")
    .replace(kind === "const" ? / = .*$/s : /$/, "");
  return { name, doc, signature, members: [], isBody: text.endsWith(" {") };
}

function membersOf(body: readonly string[]): readonly Member[] {
  const members: Member[] = [];
  let from: number | undefined;
  for (const [at, line] of body.entries()) {
    const isDoc = /^ {2,3}(?:\/\*\*|\/\/|\*)/.test(line);
    if (from === undefined && !isDoc && /^ {2}\S/.test(line)) from = at;
    // The last line of a member, or of its union.
    if (from === undefined || !/^ {2}(?: {2}\| )?\S.*;$/.test(line)) continue;
    const signature = body
      .slice(from, at + 1)
      .map((each) => each.slice(2))
      .join("\n")
      .replaceAll(/\breadonly (?=\w+\??:)/g, "")
      .replace(/;$/, "");
    const [name = ""] = /^[\w.[\]]+/.exec(signature) ?? [];
    const doc = docAbove(body, from);
    const last = members.at(-1);
    // An overload belongs to the documented one above.
    if (last?.name === name && doc === "") {
      members[members.length - 1] = { ...last, signature: `${last.signature}\n${signature}` };
    } else members.push({ name, doc, signature });
    from = undefined;
  }
  return members;
}

function plain(text: string): string {
  return text.replace(/^export (?:declare )?/, "");
}

/** Returns the docstring that ends above a line, without its marks. */
function docAbove(lines: readonly string[], at: number): string {
  let end = at;
  while (/^\s*\/\//.test(lines[end - 1] ?? "")) end -= 1;
  if (lines[end - 1]?.trimEnd().endsWith("*/") !== true) return "";
  let from = end - 1;
  while (!/^\s*\/\*\*/.test(lines[from] ?? "/**")) from -= 1;
  return lines
    .slice(from, end)
    .map((line) => line.replace(/^\s*(?:\/\*\*|\*\/|\*) ?/, "").replace(/ ?\*\/$/, ""))
    .join("\n")
    .trim();
}
