import type { ASTNode } from "@marcbachmann/cel-js";

type Signed = ASTNode & { readonly op: "!_" | "-_" };
const isSigned = (node: ASTNode): node is Signed => node.op === "!_" || node.op === "-_";

/** Different signs one after the other, which the grammar does not allow. */
export class MixedSigns extends Error {
  readonly offset: number;

  constructor(offset: number) {
    super("different signs need parentheses between them");
    this.offset = offset;
  }
}

/**
 * Reads signs as the grammar of CEL does, and returns the changed tree. One minus before a number is part of the number:
 * `-3.f()` is `(-3).f()`. An even number of equal signs has no effect.
 */
export function readSigns(node: ASTNode): ASTNode {
  if (!isSigned(node)) return Object.assign(node, { args: readParts(node.args) });
  let last = node;
  let count = 1;
  while (last.args.op === node.op && isBare(last, last.args)) {
    last = last.args;
    count++;
  }
  if (count === 1 && isNegativeNumber(node)) return joinMinus(node);
  const next = last.args;
  if (isSigned(next) && isBare(last, next) && !isNegativeNumber(next)) {
    throw new MixedSigns(next.start);
  }
  const operand = readSigns(next);
  return count % 2 === 0 ? operand : Object.assign(node, { args: operand });
}

function readParts(args: unknown): unknown {
  if (Array.isArray(args)) return args.map(readParts);
  const isNode = typeof args === "object" && args !== null && "op" in args && "args" in args;
  return isNode ? readSigns(args as ASTNode) : args;
}

/** Returns true if no parenthesis opens between a sign and a part of its operand. The parser does not keep them. */
const isBare = ({ input, start }: Signed, part: ASTNode): boolean =>
  !input.slice(start, part.start).includes("(");

/** Returns the chain of members from the operand of a sign to the value that they are read from. */
function membersOf(sign: Signed): readonly [...ASTNode[], ASTNode] {
  const chain: [...ASTNode[], ASTNode] = [sign.args];
  for (let next = receiverOf(sign.args); next !== undefined; next = receiverOf(next)) {
    chain.push(next);
  }
  return chain;
}

function receiverOf(node: ASTNode): ASTNode | undefined {
  switch (node.op) {
    case ".":
    case ".?":
    case "[]":
    case "[?]":
      return node.args[0];
    case "rcall":
      return node.args[1];
    default:
      return undefined;
  }
}

function isNegativeNumber(sign: Signed): boolean {
  const root = membersOf(sign).at(-1);
  const isNumber = root?.op === "value" && ["bigint", "number"].includes(typeof root.args);
  return isNumber && sign.op === "-_" && isBare(sign, root);
}

/** Moves a minus from the members of a number to the number. */
function joinMinus(minus: Signed): ASTNode {
  const [whole, ...members] = membersOf(minus);
  const number = members.at(-1);
  if (number === undefined) return minus;
  const last = members.at(-2) ?? whole;
  Object.assign(minus, { args: number, end: number.end });
  Object.assign(last, {
    args: (last.args as unknown[]).map((part) => (part === number ? minus : part)),
  });
  return readSigns(whole);
}
