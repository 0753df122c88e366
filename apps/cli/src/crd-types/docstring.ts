const WIDTH = 100;

/** Returns a comment of these paragraphs, with a line break after it; nothing if they are empty. */
export function docstring(paragraphs: readonly string[], indent: string): string {
  const lines = paragraphs
    .flatMap((paragraph) => ["", ...wrapped(paragraph, WIDTH - indent.length - " * ".length)])
    .slice(1);
  if (lines.every((line) => line === "")) return "";
  const [first = ""] = lines;
  if (lines.length === 1 && indent.length + first.length + "/**  */".length <= WIDTH) {
    return `${indent}/** ${first} */\n`;
  }
  const body = lines.map((line) => `${indent} * ${line}`.trimEnd());
  return [`${indent}/**`, ...body, `${indent} */`, ""].join("\n");
}

/** Splits a description at its empty lines. */
export function paragraphsOf(description = ""): string[] {
  return description.split(/\n\s*\n/).filter((text) => text.trim() !== "");
}

/** Keeps the line breaks of the text, which may be a list, and breaks lines that are too long. */
function wrapped(text: string, width: number): string[] {
  // Control characters could end the comment's line, or change the display of the file.
  const safe = text.replaceAll("*/", "*\\/").replaceAll(/[^\P{C}\n]/gu, " ");
  return safe
    .trim()
    .split("\n")
    .flatMap((line) => wrappedLine(line.trimEnd(), width));
}

function wrappedLine(line: string, width: number): string[] {
  if (line.length <= width) return [line];
  const lines: string[] = [];
  let current = "";
  for (const word of line.split(/\s+/)) {
    if (current !== "" && current.length + 1 + word.length > width) {
      lines.push(current);
      current = "";
    }
    current = current === "" ? word : `${current} ${word}`;
  }
  return [...lines, current];
}
