import type { ASTNode } from "./parse-expression.ts";

/** Returns the offset at which the API server reports an error of this node: that of its operator. */
export function operatorOffset(node: ASTNode): number {
  const { input, start } = node;
  const after = (from: ASTNode, text: string) => Math.max(start, input.indexOf(text, from.end));
  switch (node.op) {
    case "value":
    case "id":
    case "list":
    case "map":
    case "!_":
    case "-_":
      return start;
    case ".":
    case ".?":
      return after(node.args[0], ".");
    case "[]":
    case "[?]":
      return after(node.args[0], "[");
    case "call":
      return input.indexOf("(", start);
    case "rcall":
      return input.indexOf("(", after(node.args[1], "."));
    case "?:":
      return after(node.args[0], "?");
    default:
      return after(node.args[0], node.op);
  }
}
