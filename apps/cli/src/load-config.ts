import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { KonvergeError } from "@konverge/core";
import type { Config } from "@konverge/engine";

/** Imports a configuration file and takes its default export. @throws KonvergeError `invalid_config` */
export async function loadConfig(path: string): Promise<Config> {
  const url = pathToFileURL(resolve(path)).href;
  let loaded: { readonly default?: unknown };
  try {
    loaded = (await import(url)) as { readonly default?: unknown };
  } catch (error) {
    if (error instanceof KonvergeError) throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw new KonvergeError("invalid_config", `--config ${path} cannot be loaded: ${why}`, {
      cause: error,
    });
  }
  const config = loaded.default;
  if (
    typeof config !== "object" ||
    config === null ||
    !("controllers" in config) ||
    !("clusters" in config)
  ) {
    throw new KonvergeError(
      "invalid_config",
      `--config ${path} has no configuration as its default export; write \`export default defineConfig({ controllers: [...] })\``,
    );
  }
  return config as Config;
}
