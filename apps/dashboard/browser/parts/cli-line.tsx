import { announce } from "../frame/announcer.tsx";
import { Icon } from "./icon.tsx";

/** The command that shows, or does, the same. */
export function CliLine({ line }: { readonly line: string }) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(line);
      announce("Copied");
    } catch {
      // Clipboards are for secure contexts; the text can still be marked.
      announce("This browser does not let pages copy; mark the text instead");
    }
  };
  return (
    <div class="cli">
      <code>{line}</code>
      <button type="button" class="quiet" onClick={() => void copy()} aria-label={`Copy: ${line}`}>
        <Icon name="copy" />
      </button>
    </div>
  );
}

/** Filters of a view as the command's flags of the same names. */
export function flagsOf(filters: Readonly<Record<string, string>>): string[] {
  return Object.entries(filters).map(([name, value]) => `--${name} ${quote(value)}`);
}

/** One word of a shell. */
export function quote(word: string): string {
  return /^[\w./:@=,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
