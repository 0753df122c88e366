import { cpSync, globSync } from "node:fs";

/** Part of the build of the package in the current folder, or of all packages: the compiler does not copy Lua files. */
for (const path of globSync("{src,libs/*/src}/**/*.lua")) {
  cpSync(path, path.replace(/(^|\/)src\//, "$1dist/"));
}
