/**
 * Splits a block of shell commands into the words of each line. Supports quotes, comments and lines that continue; a
 * trailing `&` is a word.
 */
export function shellLines(block: string): readonly (readonly string[])[] {
  const lines = block.replaceAll(/\\\n\s*/g, "").split("\n");
  return lines.map(wordsOf).filter((words) => words.length > 0);
}

function wordsOf(line: string): readonly string[] {
  const words: string[] = [];
  for (const [text] of line.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)) {
    if (text.startsWith("#")) break;
    words.push(
      text.replaceAll(/'([^']*)'|"([^"]*)"/g, (_, single?: string, double?: string) => {
        return single ?? double ?? "";
      }),
    );
  }
  return words;
}
