import { cpSync, globSync } from "node:fs";
import { join } from "node:path";

/** Part of the build of the package in the current folder: the compiler does not copy Lua files. */
for (const path of globSync("**/*.lua", { cwd: "src" })) {
  cpSync(join("src", path), join("dist", path));
}
