import { dump } from "js-yaml";
import { Option, type Command } from "commander";
import { plain, plainJson, steers } from "./plain-text.ts";

const OUTPUTS = ["table", "json", "jsonl", "yaml", "name"] as const;
export type Output = (typeof OUTPUTS)[number];

export interface Shown {
  /** What the API answered: for programs. */
  readonly document: unknown;
  /** Its parts, a line each with `jsonl`. Default: the whole document. */
  readonly items?: readonly unknown[];
  /** A line each with `name`: what other commands take. */
  readonly names: readonly string[];
  /** For people; asked only when it is wanted. */
  readonly table: () => string;
  /** Told on stderr in place of a table of nothing. */
  readonly empty?: string | undefined;
}

export function withOutput(command: Command): Command {
  return command.addOption(
    new Option("-o, --output <format>", "what to print").choices(OUTPUTS).default("table"),
  );
}

/** Data goes to stdout, and nothing else does. */
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
      if (shown.empty !== undefined && items.length === 0) return say(shown.empty);
      return writeText(shown.table());
  }
}

/** Like the JSON, without references and without folded lines. */
function toYaml(document: unknown): string {
  // What JSON leaves out must be left out here, where it would be an error.
  const reduced: unknown = JSON.parse(JSON.stringify(document));
  const yaml = dump(reduced, { noRefs: true, lineWidth: -1 }).trimEnd();
  // JSON is YAML as well, and can escape what YAML would show.
  return steers(yaml) ? plainJson(JSON.stringify(reduced, null, 2)) : yaml;
}

/** Prose, for people. */
export function say(text: string): void {
  process.stderr.write(`${plain(text)}\n`);
}

function writeText(text: string): void {
  if (text !== "") write(text);
}

function write(line: string): void {
  process.stdout.write(`${line}\n`);
}
