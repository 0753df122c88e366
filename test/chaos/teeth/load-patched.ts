/** Preloaded by workers of a test build: loads source files without one protection. Not part of the packages. */
import fs from "node:fs";
import { registerHooks, syncBuiltinESMExports } from "node:module";
import { fileURLToPath } from "node:url";
import { MUTATION_PATCHES } from "./mutation-patches.ts";
import { PATCHES, type Change } from "./patches.ts";
import { REPLAY_PATCHES } from "./replay-patches.ts";
import { RESTORE_PATCHES } from "./restore-patches.ts";
import { VERB_PATCHES } from "./verb-patches.ts";
import { WORKFLOW_PATCHES } from "./workflow-patches.ts";

const patches: Readonly<Record<string, readonly Change[]>> = {
  ...MUTATION_PATCHES,
  ...PATCHES,
  ...REPLAY_PATCHES,
  ...RESTORE_PATCHES,
  ...VERB_PATCHES,
  ...WORKFLOW_PATCHES,
};
const name = process.env["FLEET_PATCH"] ?? "";
const changes = patches[name];
if (changes === undefined) throw new Error(`FLEET_PATCH: "${name}" is not a patch`);
const root = fileURLToPath(new URL("../../../", import.meta.url));
let missing = changes.length;

function patched(url: URL, text: string): string {
  let source = text;
  for (const { file, from, to } of changes ?? []) {
    if (fileURLToPath(url) !== root + file) continue;
    if (source.split(from).length !== 2)
      throw new Error(`patch "${name}": must occur once in ${file}: ${from}`);
    source = source.replace(from, () => to);
    missing -= 1;
  }
  if (missing === 0) process.env["FLEET_PATCH_APPLIED"] = name;
  return source;
}

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    if (!changes.some(({ file }) => url.endsWith(file))) return loaded;
    return { ...loaded, source: patched(new URL(url), String(loaded.source)) };
  },
});

// Modules read the Lua files in their folder.
const read = fs.readFileSync;
fs.readFileSync = ((file: fs.PathOrFileDescriptor, options: BufferEncoding) => {
  const content = read(file, options);
  return file instanceof URL && file.pathname.endsWith(".lua")
    ? patched(file, String(content))
    : content;
}) as typeof read;
syncBuiltinESMExports();
