import type { CommandNode, OptionNode } from "./command-tree.ts";

/** Name of the command in the shell. */
const PROGRAM = "konverge";
export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

/** Returns a script that completes commands, options and their choices without running the program. */
export function completionScript(shell: Shell, nodes: readonly CommandNode[]): string {
  return shell === "fish" ? fishScript(nodes) : bashScript(shell, nodes);
}

/** For bash, and for zsh with its emulation of bash completions. */
function bashScript(shell: "bash" | "zsh", nodes: readonly CommandNode[]): string {
  const paths = nodes.filter(({ path }) => path !== "").map(({ path }) => quote(path));
  const words = nodes.map(
    ({ path, commands, options }) =>
      `    ${quote(path)}) list=${quote([...commands.map(({ name }) => name), ...options.map(({ long }) => long)].join(" "))} ;;`,
  );
  const chosen = new Map<string, string>();
  for (const { path, options } of nodes) {
    for (const option of options.filter(({ choices }) => choices.length > 0)) {
      const names = [option.long, option.short].filter((name) => name !== undefined);
      const patterns = names.map((name) => quote(`${path} ${name}`)).join("|");
      chosen.set(patterns, option.choices.join(" "));
    }
  }
  const choices = [...chosen].map(([patterns, list]) => `    ${patterns}) list=${quote(list)} ;;`);
  const head = shell === "zsh" ? "autoload -U +X bashcompinit && bashcompinit\n" : "";
  return `${head}_${PROGRAM}() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" at="" list="" word
  for word in "\${COMP_WORDS[@]:1:$((COMP_CWORD-1))}"; do
    case "\${at:+$at }$word" in
    ${paths.join("|")}) at="\${at:+$at }$word" ;;
    esac
  done
  case "$at" in
${words.join("\n")}
  esac
  case "$at $prev" in
${choices.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$list" -- "$cur"))
}
complete -o default -F _${PROGRAM} ${PROGRAM}`;
}

function fishScript(nodes: readonly CommandNode[]): string {
  const paths = nodes.filter(({ path }) => path !== "").map(({ path }) => quote(path));
  const lines = nodes.flatMap(({ path, commands, options }) => {
    const at = `complete -c ${PROGRAM} -n "__${PROGRAM}_at ${quote(path)}"`;
    return [
      ...commands.map(({ name, description }) => `${at} -f -a ${name} -d ${quote(description)}`),
      ...options.map((option) => `${at} ${fishOption(option)}`),
    ];
  });
  return `function __${PROGRAM}_at
  set -l at
  for word in (commandline -opc)[2..]
    set -l longer (string join -- ' ' $at $word)
    contains -- $longer ${paths.join(" ")}; and set at $longer
  end
  test "$at" = "$argv[1]"
end
${lines.join("\n")}`;
}

function fishOption({ long, short, description, takesValue, choices }: OptionNode): string {
  const parts = [`-l ${long.replace(/^--/, "")}`];
  if (short !== undefined) parts.push(`-s ${short.replace(/^-/, "")}`);
  if (takesValue) parts.push("-r");
  if (choices.length > 0) parts.push(`-f -a ${quote(choices.join(" "))}`);
  return `${parts.join(" ")} -d ${quote(description)}`;
}

/** Quotes for all three shells: single quotes, without quotes and backslashes inside. */
function quote(text: string): string {
  return `'${text.replaceAll("\\", "").replaceAll("'", "’")}'`;
}
