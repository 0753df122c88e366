import { announce } from "../frame/announcer.tsx";
import { Icon } from "./icon.tsx";

/** The equivalent CLI command, with a button to copy it. */
export function CliLine({ line }: { readonly line: string }) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(line);
      announce("Copied");
    } catch {
      // The clipboard requires a secure context.
      announce("Clipboard unavailable; select and copy the text");
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

/** Converts the filters of a view to flags of the same names. */
export function flagsOf(filters: Readonly<Record<string, string>>): string[] {
  return Object.entries(filters).map(([name, value]) => `--${name} ${quote(value)}`);
}

/** Quotes a word for a shell. */
export function quote(word: string): string {
  return /^[\w./:@=,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
