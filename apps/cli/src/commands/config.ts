import {
  describeSettings,
  readSettings,
  settingsSchema,
  type Settings,
  type SettingsInput,
} from "@konverge/contracts";
import { showRedisUrl } from "@konverge/core";
import type { Command } from "commander";
import { z } from "zod";
import { columns } from "../text/columns.ts";
import { loadConfig } from "../config/load-config.ts";
import { print, withOutput, type Output } from "../text/output.ts";

interface ConfigFlags {
  readonly output: Output;
}
interface PrintFlags extends ConfigFlags {
  readonly config?: string;
}
interface Setting {
  readonly key: string;
  readonly env: string;
  readonly value?: unknown;
  readonly source: "environment" | "file" | "default";
}

const HIDDEN = "<hidden>";

export function addConfigCommand(program: Command): void {
  const config = program.command("config").description("Show settings and their sources");

  withOutput(
    config.command("print").description("Print the effective settings; secrets are hidden"),
  )
    .option("--config <file>", "Configuration file; environment variables take precedence")
    .action(async ({ output, config: path }: PrintFlags) => {
      const file = path === undefined ? undefined : (await loadConfig(path)).settings;
      const items = effectiveSettings(readSettings({ file, env: process.env }), file);
      print(output, {
        document: { items },
        items,
        names: items.map(({ key }) => key),
        table: () =>
          columns([
            ["SETTING", "SOURCE", "VARIABLE", "VALUE"],
            ...items.map(({ key, source, env, value }) => [
              key,
              source,
              env,
              value === undefined ? "-" : String(value),
            ]),
          ]),
      });
    });
  withOutput(config.command("schema").description("Print the settings as JSON Schema")).action(
    ({ output }: ConfigFlags) => {
      const document = z.toJSONSchema(settingsSchema, { io: "input", unrepresentable: "any" });
      const docs = describeSettings();
      print(output, {
        document,
        names: docs.map(({ key }) => key),
        table: () =>
          columns([
            ["SETTING", "VARIABLE", "DESCRIPTION"],
            ...docs.map(({ key, env, description }) => [key, env, description]),
          ]),
      });
    },
  );
}

/** Durations are in ms, as the processes use them. */
function effectiveSettings(settings: Settings, file: SettingsInput | undefined): Setting[] {
  return describeSettings().map(({ key, env, secret }) => {
    const name = key as keyof Settings;
    const value = settings[name];
    const isSet = [env, `${env}_FILE`, ...(key === "redisUrl" ? ["REDIS_URL"] : [])].some(
      (variable) => (process.env[variable] ?? "") !== "",
    );
    const source = isSet ? "environment" : file?.[name] === undefined ? "default" : "file";
    if (value === undefined) return { key, env, source };
    const shown = key === "redisUrl" ? showRedisUrl(String(value)) : secret ? HIDDEN : value;
    return { key, env, source, value: shown };
  });
}
