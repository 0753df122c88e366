/** An input of the user: a key by its name, or a printable character. */
export type TopKey =
  | { readonly kind: "char"; readonly char: string }
  | { readonly kind: "named"; readonly name: KeyName };

const NAMES = {
  "\u001b[A": "up",
  "\u001bOA": "up",
  "\u001b[B": "down",
  "\u001bOB": "down",
  "\u001b[5~": "pageUp",
  "\u0002": "pageUp",
  "\u001b[6~": "pageDown",
  "\u0006": "pageDown",
  "\u001b[H": "home",
  "\u001b[F": "end",
  "\r": "enter",
  "\n": "enter",
  "\u001b": "escape",
  "\u007f": "backspace",
  "\b": "backspace",
  "\u0003": "interrupt",
} as const;
type KeyName = (typeof NAMES)[keyof typeof NAMES];

// eslint-disable-next-line no-control-regex -- keys of terminals are control sequences
const SEQUENCE = /\u001b\[[\d;]*[A-Za-z~]|\u001bO[A-Z]|[^]/gu;

/** Splits the input of a terminal in raw mode into keys. Unknown sequences are skipped. */
export function parseKeys(text: string): TopKey[] {
  return (text.match(SEQUENCE) ?? []).flatMap((part): TopKey[] => {
    if (part in NAMES) return [{ kind: "named", name: NAMES[part as keyof typeof NAMES] }];
    return /^\P{Cc}$/u.test(part) ? [{ kind: "char", char: part }] : [];
  });
}
