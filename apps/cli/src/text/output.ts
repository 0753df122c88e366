import { dump } from "js-yaml";
import { Option, type Command } from "commander";
import { plain, plainJson, steers } from "./plain-text.ts";

const OUTPUTS = ["table", "json", "jsonl", "yaml", "name"] as const;
export type Output = (typeof OUTPUTS)[number];

export interface Shown {
  /** The response of the API. */
  readonly document: unknown;
  /** The lines of `jsonl`. Default: the whole document. */
  readonly items?: readonly unknown[];
  /** The lines of `name`, which other commands accept. */
  readonly names: readonly string[];
  /** Called only for the format `table`. */
  readonly table: () => string;
  /** Printed to stderr instead of an empty table. */
  readonly empty?: string | undefined;
}

/** Heading of the options of most commands, below those of the command. */
export const COMMON_OPTIONS = "Common options:";

export function withOutput(command: Command): Command {
  return command.addOption(
    new Option("-o, --output <format>", "Output format")
      .choices(OUTPUTS)
      .default("table")
      .helpGroup(COMMON_OPTIONS),
  );
}

/** Prints data to stdout; everything else goes to stderr. */
export function print(output: Output, shown: Shown): void {
  const { document, items = [document], names } = shown;
  switch (output) {
    case "json":
      return write(plainJson(JSON.stringify(document, null, 2)));
    case "jsonl":
      return items.forEach((item) => write(plainJson(JSON.stringify(item))));
    case "yaml":
      return write(toYaml(document));
    case "name":
      return names.forEach((name) => write(plain(name)));
    case "table":
      if (shown.empty !== undefined && items.length === 0) return printNote(shown.empty);
      return writeText(shown.table());
  }
}

/** Like the JSON, without references and without folded lines. */
function toYaml(document: unknown): string {
  // `dump` throws on undefined, which JSON omits.
  const reduced: unknown = JSON.parse(JSON.stringify(document));
  const yaml = dump(reduced, { noRefs: true, lineWidth: -1 }).trimEnd();
  // JSON is valid YAML and escapes control characters.
  return steers(yaml) ? plainJson(JSON.stringify(reduced, null, 2)) : yaml;
}

/** Prints a message for users to stderr. */
export function printNote(text: string): void {
  process.stderr.write(`${plain(text)}\n`);
}

function writeText(text: string): void {
  if (text !== "") write(text);
}

function write(line: string): void {
  process.stdout.write(`${line}\n`);
}
