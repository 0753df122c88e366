import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { packPackages } from "./pack-packages.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const [out = "packages"] = process.argv.slice(2);
for (const { name, version, file } of packPackages({
  root,
  names: ["konverge"],
  out: resolve(out),
})) {
  console.log(`${name}@${version} ${file}`);
}
