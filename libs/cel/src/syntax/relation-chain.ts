import { operatorOffset } from "./operator-offset.ts";
import { isParenthesized } from "./parentheses.ts";
import type { ASTNode } from "./parse-expression.ts";

const RELATIONS: ReadonlySet<string> = new Set(["==", "!=", "<", "<=", ">", ">=", "in"]);

type Relation = ASTNode & { readonly op: "!=" | "<" | "<=" | "==" | ">" | ">=" | "in" };

export const isRelation = (node: ASTNode): node is Relation => RELATIONS.has(node.op);

interface Link {
  readonly op: string;
  readonly offset: number;
  readonly right: ASTNode;
}

/**
 * Returns the operands of a relation from left to right. In CEL `a == b < c` is `(a == b) < c`, but the parser gives `<` a
 * higher precedence.
 */
export function relationChain(node: Relation): { readonly first: ASTNode; readonly rest: Link[] } {
  const [left, right] = node.args;
  const offset = operatorOffset(node);
  const before =
    isRelation(left) && !isParenthesized(left, node.start)
      ? relationChain(left)
      : { first: left, rest: [] };
  const isNested = isRelation(right) && !isParenthesized(right, offset + node.op.length);
  const after = isNested ? relationChain(right) : { first: right, rest: [] };
  return {
    first: before.first,
    rest: [...before.rest, { op: node.op, offset, right: after.first }, ...after.rest],
  };
}
