/** Preloaded by a worker of a test build: loads one source file without one protection. Never part of what is shipped. */
import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";
import { PATCHES, type Patch, type PatchName } from "./patches.ts";

const name = process.env["FLEET_PATCH"] as PatchName;
const patch: Patch | undefined = PATCHES[name];
if (patch === undefined) throw new Error(`FLEET_PATCH: "${name}" is no patch`);
const root = fileURLToPath(new URL("../../../", import.meta.url));

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    if (!url.startsWith("file:") || fileURLToPath(url) !== root + patch.file) return loaded;
    let source = String(loaded.source);
    for (const { from, to } of patch.changes) {
      if (source.split(from).length !== 2)
        throw new Error(`patch "${name}": this must be in ${patch.file} once: ${from}`);
      source = source.replace(from, () => to);
    }
    process.env["FLEET_PATCH_APPLIED"] = name;
    return { ...loaded, source };
  },
});
