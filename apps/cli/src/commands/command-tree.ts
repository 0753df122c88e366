import { defined } from "@konverge/core";
import type { Command } from "commander";

/** A command for completions and docs. */
export interface CommandNode {
  /** Path without the program name, such as `queue pause`; empty for the program. */
  readonly path: string;
  readonly description: string;
  readonly commands: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly OptionNode[];
}

export interface OptionNode {
  readonly long: string;
  readonly short?: string;
  readonly description: string;
  /** False for a flag. */
  readonly takesValue: boolean;
  readonly choices: readonly string[];
}

/** Returns every visible command, the program first. */
export function commandTree(program: Command): CommandNode[] {
  return nodesOf(program, "");
}

function nodesOf(command: Command, path: string): CommandNode[] {
  const help = command.createHelp();
  const children = help.visibleCommands(command).filter((child) => child.name() !== "help");
  const node: CommandNode = {
    path,
    description: command.description(),
    commands: children.map((child) => ({ name: child.name(), description: child.description() })),
    options: help.visibleOptions(command).map((option) => ({
      long: option.long ?? "",
      ...defined({ short: option.short }),
      description: option.description,
      takesValue: option.required || option.optional,
      choices: option.argChoices ?? [],
    })),
  };
  return [
    node,
    ...children.flatMap((child) =>
      nodesOf(child, path === "" ? child.name() : `${path} ${child.name()}`),
    ),
  ];
}
