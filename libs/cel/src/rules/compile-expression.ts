import { Compiler } from "../check/compiler.ts";
import { declareVariable, type Compiled, type Frame } from "../check/compiled.ts";
import { formatErrors, parseExpression, type ExpressionError } from "../syntax/parse-expression.ts";
import { formatType, optionalOf, type CelType } from "../types/cel-type.ts";
import { CelError, type Value } from "../values/value.ts";

/** Loop iterations of one expression. The real server limits costs, of which this is the part that can explode. */
const MAX_STEPS = 1_000_000;

/** A checked expression of a rule. */
export interface Expression {
  readonly text: string;
  /** The type of its value, for example `bool`. */
  readonly type: string;
  readonly usesOldSelf: boolean;
  /** Why a constant part cannot be evaluated, with the API server's text. The server rejects the expression. */
  readonly constantError: string | undefined;
  /** @throws CelError */
  readonly evaluate: (self: Value, oldSelf?: Value) => Value;
}

/** An expression, or why it is invalid, with the API server's text. */
export type CompileResult =
  | { readonly expression: Expression; readonly error?: undefined }
  | {
      readonly expression?: undefined;
      readonly error: string;
      /** True if the only errors are functions that a newer API server may know. */
      readonly hasUnknownFunction: boolean;
    };

/** Parses and checks an expression over `self` and `oldSelf`. */
export function compileExpression(
  text: string,
  self: CelType,
  isOldSelfOptional: boolean,
): CompileResult {
  try {
    return compile(text, self, isOldSelfOptional);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    // The parser limits the depth of brackets, but not that of operators.
    return failure(text, [{ message: "Syntax error: too many nested operators", offset: 0 }]);
  }
}

function compile(text: string, self: CelType, isOldSelfOptional: boolean): CompileResult {
  const parsed = parseExpression(text);
  if (parsed.error !== undefined) return failure(text, [parsed.error]);
  const oldSelf = isOldSelfOptional ? optionalOf(self) : self;
  const compiler = new Compiler(
    declareVariable(declareVariable(undefined, "self", self), "oldSelf", oldSelf),
  );
  const compiled = compiler.compile(parsed.ast);
  const errors = compiler.allErrors();
  if (errors.length > 0) return failure(text, errors);
  return {
    expression: {
      text,
      usesOldSelf: compiler.used.has("oldSelf"),
      constantError: compiler.constantErrors[0],
      type: formatType(compiler.bindings.resolve(compiled.type, true)),
      evaluate: evaluator(compiled),
    },
  };
}

const failure = (text: string, errors: readonly ExpressionError[]): CompileResult => ({
  error: formatErrors(text, errors),
  hasUnknownFunction: errors.every(({ isUnknownFunction }) => isUnknownFunction === true),
});

function evaluator({ run }: Compiled): Expression["evaluate"] {
  return (self, oldSelf) => {
    const budget = { stepsLeft: MAX_STEPS };
    const outer: Frame = { name: "self", value: self, parent: undefined, budget };
    try {
      return run({ name: "oldSelf", value: oldSelf, parent: outer, budget });
    } catch (error) {
      // Deeply nested values or expressions.
      if (error instanceof RangeError) {
        throw new CelError("operation cancelled: actual cost limit exceeded", { cause: error });
      }
      throw error;
    }
  };
}
