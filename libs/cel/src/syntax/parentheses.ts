import type { ASTNode } from "./parse-expression.ts";

const QUOTED = /(?:[rR]?)("""[\s\S]*?"""|'''[\s\S]*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')/gy;

/** Returns true if parentheses that open behind an offset close behind the node. The parser does not keep them. */
export function isParenthesized({ input, end }: ASTNode, from: number): boolean {
  const start = input.length - input.slice(from).trimStart().length;
  if (input[start] !== "(") return false;
  let depth = 0;
  for (let at = start; at < input.length; at++) {
    QUOTED.lastIndex = at;
    const quoted = QUOTED.exec(input);
    if (quoted !== null) {
      at += quoted[0].length - 1;
      continue;
    }
    if (input[at] === "(") depth++;
    if (input[at] === ")") depth--;
    if (depth === 0) return at >= end;
  }
  return false;
}
