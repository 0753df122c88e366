import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { LuaPart, Script } from "@konverge/redis";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Every Lua file of the packages, with its path relative to the root and its text. */
export const LUA_FILES: readonly { readonly path: string; readonly text: string }[] = globSync(
  "{apps,libs}/*/src/**/*.lua",
  { cwd: root },
)
  .toSorted()
  .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));

/** The exported scripts and parts of the modules in the folders of Lua files. */
export async function loadScripts(): Promise<{
  readonly scripts: readonly Script[];
  readonly parts: readonly LuaPart[];
}> {
  const folders = new Set(LUA_FILES.map(({ path }) => path.slice(0, path.lastIndexOf("/"))));
  const modules = [...folders].flatMap((folder) =>
    globSync(`${folder}/*.ts`, { cwd: root, exclude: ["**/*.test.ts"] }),
  );
  const loaded = await Promise.all(
    modules.map(
      async (path) =>
        (await import(pathToFileURL(join(root, path)).href)) as Readonly<Record<string, unknown>>,
    ),
  );
  const exported = loaded.flatMap((module) => Object.values(module)).filter(hasLua);
  return {
    scripts: exported.filter((value): value is Script & LuaPart => "sha" in value),
    parts: exported.filter((value) => !("sha" in value)),
  };
}

function hasLua(value: unknown): value is LuaPart {
  return typeof value === "object" && value !== null && "lua" in value;
}
