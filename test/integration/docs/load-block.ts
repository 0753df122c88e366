import { readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";

/** A fenced code block of a page. */
export interface Block {
  /** Path from the root of the repository. */
  readonly page: string;
  readonly language: string;
  /** Place among the blocks of this language in the page, from 1. */
  readonly number: number;
  readonly text: string;
}

export function blocksOf(page: string): readonly Block[] {
  const counts = new Map<string, number>();
  const found = readFileSync(page, "utf8").matchAll(/^ *```(\w+)\n(.*?)^ *```$/gms);
  return [...found].map(([, language = "", text = ""]) => {
    const number = (counts.get(language) ?? 0) + 1;
    counts.set(language, number);
    return { page, language, number, text };
  });
}

/** `docs/testing.md ts 2`: the second block of TypeScript. */
export function nameOf({ page, language, number }: Omit<Block, "text">): string {
  return `${page} ${language} ${number}`;
}

let serial = 0;

/** Imports a module of several texts, which imports packages as the tests do. */
export async function importText(...parts: readonly string[]): Promise<Record<string, unknown>> {
  serial += 1;
  const file = new URL(`.block-${process.pid}-${serial}.ts`, import.meta.url);
  await writeFile(file, parts.join("\n"));
  try {
    return (await import(file.href)) as Record<string, unknown>;
  } finally {
    await rm(file);
  }
}

/** A function of a block's statements. `names` are the variables that the block takes; `returns` is the text of its result. */
export async function functionOf<R = unknown>(
  block: Block,
  names: readonly string[],
  returns = "undefined",
): Promise<(env: object) => Promise<R>> {
  const lines = block.text.split("\n");
  const isImport = (line: string) => line.startsWith("import ");
  // The test gives what a page imports from its other files.
  const imports = lines.filter((line) => isImport(line) && !/ from "\.\//.test(line)).join("\n");
  const body = lines
    .filter((line) => !isImport(line))
    .join("\n")
    .replace(/^export default /m, "const exported = ")
    .replaceAll(/^export /gm, "");
  // In a block of its own, since it may declare a name again.
  const text = `export async function run({ ${names.join(", ")} }: any): Promise<any> {{\n${body}\nreturn ${returns};\n}}`;
  const { run } = await importText("// @ts-nocheck", imports, text);
  return run as (env: object) => Promise<R>;
}

/** Returns a block by its name, such as `docs/testing.md ts 2`. */
export function blockOf(name: string): Block {
  const [page = ""] = name.split(" ");
  const found = blocksOf(page).find((each) => nameOf(each) === name);
  if (found === undefined) throw new Error(`${name} does not exist`);
  return found;
}
