import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Plugin } from "vite";

/** Adds the licenses of the bundled packages to the build, because the minified scripts do not contain them. */
export function thirdPartyNotices(): Plugin {
  return {
    name: "third-party-notices",
    generateBundle(_options, bundle) {
      const folders = Object.values(bundle).flatMap((part) =>
        part.type === "chunk" ? part.moduleIds.flatMap(packageFolder) : [],
      );
      const notices = [...new Set(folders)].map(noticeOf).toSorted();
      const source = `The dashboard contains these packages.\n\n${notices.join("\n")}`;
      this.emitFile({ type: "asset", fileName: "assets/third-party-notices.txt", source });
    },
  };
}

function packageFolder(module: string): string[] {
  const [folder] = /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(module) ?? [];
  return folder === undefined ? [] : [folder];
}

/** @throws Error if the package has no license text */
function noticeOf(folder: string): string {
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
    readonly name: string;
    readonly version: string;
    readonly license: string;
  };
  const { name, version, license } = manifest;
  const [file] = globSync("LICEN[CS]E*", { cwd: folder });
  if (file === undefined) throw new Error(`${name} ${version} has no license text in its package`);
  const text = readFileSync(join(folder, file), "utf8").trim();
  return `${name} ${version} (${license})\n\n${text}\n`;
}
