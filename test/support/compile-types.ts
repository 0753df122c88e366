import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";

const OPTIONS = {
  target: "es2024",
  lib: ["es2024"],
  module: "nodenext",
  types: ["node"],
  typeRoots: [resolve("node_modules/@types")],
  strict: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  verbatimModuleSyntax: true,
  isolatedDeclarations: true,
  declaration: true,
  erasableSyntaxOnly: true,
  allowImportingTsExtensions: true,
  noEmit: true,
  skipLibCheck: true,
  customConditions: ["@konverge/source"],
  // The part of `konverge` that generated types import. All of it would be compiled each time.
  paths: { konverge: [resolve("libs/core/src/index.ts")] },
};

/** Generated zod schemas have no type annotations, and import functions. */
const ZOD_OPTIONS = {
  ...OPTIONS,
  isolatedDeclarations: false,
  declaration: false,
  lib: ["es2024", "esnext.disposable"],
  paths: {
    konverge: [resolve("test/support/generated-imports.ts")],
    zod: [resolve("node_modules/zod/index.d.ts")],
  },
};

/** Compiles modules, named without `.ts`, in one run of tsc. Returns its errors; empty if there are none. */
export async function compileTypes(
  modules: Readonly<Record<string, string>>,
  { isZod = false }: { readonly isZod?: boolean } = {},
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "konverge-types-"));
  try {
    await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
    await writeFile(
      join(folder, "tsconfig.json"),
      JSON.stringify({ compilerOptions: isZod ? ZOD_OPTIONS : OPTIONS, include: ["*.ts"] }),
    );
    for (const [name, module] of Object.entries(modules)) {
      await writeFile(join(folder, `${name}.ts`), module);
    }
    const tsc = resolve("node_modules/typescript/lib/tsc.js");
    const child = spawn(process.execPath, [tsc, "-p", folder, "--pretty", "false"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [output, [code]] = await Promise.all([text(child.stdout), once(child, "close")]);
    return code === 0 ? "" : output || `tsc exited with ${String(code)}`;
  } finally {
    await rm(folder, { recursive: true });
  }
}
