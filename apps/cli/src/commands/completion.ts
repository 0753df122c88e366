import { Argument, type Command } from "commander";
import { commandTree } from "./command-tree.ts";
import { completionScript, SHELLS, type Shell } from "./completion-scripts.ts";

const HELP = `
Installation:
  bash   konverge completion bash > ~/.local/share/bash-completion/completions/konverge
  zsh    konverge completion zsh >> ~/.zshrc
  fish   konverge completion fish > ~/.config/fish/completions/konverge.fish`;

export function addCompletionCommand(program: Command): void {
  program
    .command("completion")
    .description("Print a shell completion script")
    .addArgument(new Argument("<shell>", "Shell").choices(SHELLS))
    .addHelpText("after", HELP)
    .action((shell: Shell) => {
      process.stdout.write(`${completionScript(shell, commandTree(program))}\n`);
    });
}
