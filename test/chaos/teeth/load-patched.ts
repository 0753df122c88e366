/** Preloaded by a worker of a test build: source files are loaded without one protection. Never part of what is shipped. */
import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";
import { PATCHES, type Change } from "./patches.ts";
import { VERB_PATCHES } from "./verb-patches.ts";
import { WORKFLOW_PATCHES } from "./workflow-patches.ts";

const patches: Readonly<Record<string, readonly Change[]>> = {
  ...PATCHES,
  ...VERB_PATCHES,
  ...WORKFLOW_PATCHES,
};
const name = process.env["FLEET_PATCH"] ?? "";
const changes = patches[name];
if (changes === undefined) throw new Error(`FLEET_PATCH: "${name}" is no patch`);
const root = fileURLToPath(new URL("../../../", import.meta.url));
let missing = changes.length;

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    const here = changes.filter(
      ({ file }) => url.startsWith("file:") && fileURLToPath(url) === root + file,
    );
    if (here.length === 0) return loaded;
    let source = String(loaded.source);
    for (const { file, from, to } of here) {
      if (source.split(from).length !== 2)
        throw new Error(`patch "${name}": this must be in ${file} once: ${from}`);
      source = source.replace(from, () => to);
      missing -= 1;
    }
    if (missing === 0) process.env["FLEET_PATCH_APPLIED"] = name;
    return { ...loaded, source };
  },
});
