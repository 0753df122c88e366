import { labelValueErrors, qualifiedNameErrors } from "@konverge/core";

/** One condition of a label selector. */
export interface LabelRequirement {
  readonly key: string;
  readonly operator: "!" | "!=" | "<" | "=" | ">" | "exists" | "in" | "notin";
  readonly values: readonly string[];
}

/** A selector that cannot be parsed, with the text of apimachinery's `labels.Parse`. */
export class SelectorError extends Error {}

const OPERATORS = ["in", "notin", "=", "==", "!=", "gt", "lt"].join(", ");
const BINARY = new Set(["=", "==", "!=", ">", "<", "in", "notin"]);
const SYMBOLS = new Set([...BINARY, ")", ",", "!", "("]);
const SPACE = /^[ \t\r\n]+/;
const WORD = /^[^ \t\r\n=!(),><]+/;
/** The longest symbol of a run of them; the others stay. */
const SYMBOL = /^(==|!=|[=!(),><])/;

/** Parses a label selector of a query, as apimachinery's parser does. @throws SelectorError */
export function parseLabelSelector(text: string): LabelRequirement[] {
  const tokens = new Tokens(text);
  const requirements: LabelRequirement[] = [];
  for (;;) {
    const next = tokens.peek();
    if (next === "") return requirements;
    if (!isWord(next) && next !== "!") {
      throw new SelectorError(`found '${next}', expected: !, identifier, or 'end of string'`);
    }
    requirements.push(parseRequirement(tokens));
    const separator = tokens.take();
    if (separator === "") return requirements;
    if (separator !== ",") {
      throw new SelectorError(`found '${separator}', expected: ',' or 'end of string'`);
    }
    const after = tokens.peek();
    if (!isWord(after) && after !== "!") {
      throw new SelectorError(`found '${after}', expected: identifier after ','`);
    }
  }
}

/** The tokens of a selector; the empty one marks its end. */
class Tokens {
  #rest: string;

  constructor(text: string) {
    this.#rest = text;
  }

  peek(): string {
    this.#rest = this.#rest.replace(SPACE, "");
    return (SYMBOL.exec(this.#rest) ?? WORD.exec(this.#rest))?.[0] ?? "";
  }

  take(): string {
    const token = this.peek();
    this.#rest = this.#rest.slice(token.length);
    return token;
  }
}

/** Words that are operators are values too: `value in (in)`. */
const isWord = (token: string): boolean =>
  token === "in" || token === "notin" || (token !== "" && !SYMBOLS.has(token));

function parseRequirement(tokens: Tokens): LabelRequirement {
  const refuse = (why: string): never => {
    throw new SelectorError(`unable to parse requirement: ${why}`);
  };
  const isNegated = tokens.peek() === "!";
  if (isNegated) tokens.take();
  const key = tokens.take();
  if (!isWord(key)) refuse(`found '${key}', expected: identifier`);
  const keyErrors = qualifiedNameErrors(key);
  if (keyErrors.length > 0) {
    refuse(`<nil>: Invalid value: ${JSON.stringify(key)}: ${keyErrors.join("; ")}`);
  }
  // A negated key has no operator: the caller refuses any further token.
  if (isNegated) return { key, operator: "!", values: [] };
  const next = tokens.peek();
  if (next === "" || next === ",") return { key, operator: "exists", values: [] };
  const operator = tokens.take();
  if (!BINARY.has(operator)) refuse(`found '${operator}', expected: ${OPERATORS}`);
  const isSet = operator === "in" || operator === "notin";
  const values = isSet ? parseValues(tokens, refuse) : [parseExactValue(tokens, refuse)];
  checkValues(key, operator, values, refuse);
  return {
    key,
    operator: (operator === "==" ? "=" : operator) as LabelRequirement["operator"],
    values,
  };
}

function parseValues(tokens: Tokens, refuse: (why: string) => never): string[] {
  const open = tokens.take();
  if (open !== "(") refuse(`found '${open}' expected: '('`);
  const first = tokens.peek();
  if (first === ")") {
    tokens.take();
    return [""];
  }
  if (!isWord(first) && first !== ",") {
    refuse(`found '${first}', expected: ',', ')' or identifier`);
  }
  const values = new Set<string>();
  for (;;) {
    const token = tokens.take();
    const next = tokens.peek();
    if (isWord(token)) {
      values.add(token);
      if (next !== "," && next !== ")") refuse(`found '${next}', expected: ',' or ')'`);
    } else if (token === ",") {
      if (values.size === 0 || next === ")" || next === ",") values.add("");
    } else refuse(`found '${token}', expected: ',', or identifier`);
    if (next !== ")") continue;
    tokens.take();
    return [...values].toSorted();
  }
}

function parseExactValue(tokens: Tokens, refuse: (why: string) => never): string {
  const next = tokens.peek();
  if (next === "" || next === ",") return "";
  tokens.take();
  if (!isWord(next)) refuse(`found '${next}', expected: identifier`);
  return next;
}

/** Parses an integer of 64 bits; undefined for any other text. */
export function parseInteger(text: string): bigint | undefined {
  if (!/^[-+]?\d+$/.test(text)) return undefined;
  const value = BigInt(text.replace("+", ""));
  return BigInt.asIntN(64, value) === value ? value : undefined;
}

function checkValues(
  key: string,
  operator: string,
  values: readonly string[],
  refuse: (why: string) => never,
): void {
  const errors = values.flatMap((value, index) => {
    const shown = JSON.stringify(value);
    const isOrder = operator === ">" || operator === "<";
    return isOrder && parseInteger(value) === undefined
      ? [
          `values[${index}]: Invalid value: ${shown}: for 'Gt', 'Lt' operators, the value must be an integer`,
        ]
      : [];
  });
  errors.push(
    ...values.flatMap((value, index) => {
      const texts = labelValueErrors(value);
      const shown = JSON.stringify(value);
      return texts.length === 0
        ? []
        : [`values[${index}][${key}]: Invalid value: ${shown}: ${texts.join("; ")}`];
    }),
  );
  if (errors.length > 0) refuse(errors.length === 1 ? String(errors[0]) : `[${errors.join(", ")}]`);
}
