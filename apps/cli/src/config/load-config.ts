import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { readSettings, type Settings } from "@konverge/contracts";
import { invalidConfig, isKonvergeError, KonvergeError, type ErrorIssue } from "@konverge/core";
import type { Config } from "@konverge/worker";

/**
 * Loads the configuration file and the settings of file and environment.
 * @throws KonvergeError `invalid_config` with the issues of both
 */
export async function loadWorkerConfig(
  path: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<{ readonly config: Config; readonly settings: Settings }> {
  const issues: ErrorIssue[] = [];
  const config = await loadConfig(path).catch((error: unknown) => take(error, issues));
  let settings: Settings | undefined;
  try {
    settings = readSettings({ file: config?.settings, env });
  } catch (error) {
    take(error, issues);
  }
  if (config === undefined || settings === undefined) throw invalidConfig(issues);
  return { config, settings };
}

function take(error: unknown, issues: ErrorIssue[]): undefined {
  if (!isKonvergeError(error) || error.code !== "invalid_config") throw error;
  if (error.issues.length > 0) issues.push(...error.issues);
  else issues.push({ pointer: "", detail: error.message });
}

/** Imports a configuration file and returns its default export. @throws KonvergeError `invalid_config` */
export async function loadConfig(path: string): Promise<Config> {
  const url = pathToFileURL(resolve(path)).href;
  let loaded: { readonly default?: unknown };
  try {
    loaded = (await import(url)) as { readonly default?: unknown };
  } catch (error) {
    if (isKonvergeError(error)) throw error;
    const why = error instanceof Error ? `${error.message}${placeOf(error)}` : String(error);
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
      `--config ${path} has no configuration as default export; write \`export default defineConfig({ controllers: [...] })\``,
    );
  }
  return config as Config;
}

/** Returns the position of a syntax error or exception, which Node reports only in the stack. */
function placeOf({ stack = "" }: Error): string {
  const [, file, line] = /file:\/\/(\S+?):(\d+)/.exec(stack) ?? [];
  return file === undefined ? "" : ` (${decodeURI(file)}:${line})`;
}
