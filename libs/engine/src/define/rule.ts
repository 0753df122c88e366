import type { ValidationRule } from "@konverge/cel";
import { z } from "zod";

const KEYWORD = "x-kubernetes-validations";

/** The error of a violated rule, and when the API server runs the rule. */
export interface RuleOptions {
  /** The error message. Default: `failed rule: ` and the expression. */
  readonly message?: string;
  /** An expression in CEL whose result is the message. If it cannot be evaluated, `message` is used. */
  readonly messageExpression?: string;
  /** The reason of the error. Default `FieldValueInvalid`. */
  readonly reason?:
    | "FieldValueDuplicate"
    | "FieldValueForbidden"
    | "FieldValueInvalid"
    | "FieldValueRequired";
  /** The field to name in the error, relative to the schema of the rule, for example `.min`. */
  readonly fieldPath?: string;
  /** Makes `oldSelf` an optional, so that a rule with `oldSelf` also runs if there is no earlier value. */
  readonly optionalOldSelf?: boolean;
}

/**
 * Attaches a rule in CEL to a zod schema, for {@link defineResource}: `schema.check(rule("self.min <= self.max"))`. The API
 * server runs it at each write; zod does not. `self` is the value, `oldSelf` the replaced value. A rule with `oldSelf` does
 * not run for new values. A string as the second argument is the message.
 */
export function rule<T>(
  expression: string,
  options: RuleOptions | string = {},
): z.core.$ZodCheck<T> {
  const added: ValidationRule = {
    rule: expression,
    ...(typeof options === "string" ? { message: options } : options),
  };
  const check = z.meta<T>({});
  check._zod.onattach = [
    (schema) => {
      const existing = z.globalRegistry.get(schema) ?? {};
      const rules = [...rulesOf(schema), added];
      z.globalRegistry.add(schema, { ...existing, [KEYWORD]: rules });
    },
  ];
  return check;
}

/**
 * Forbids changes of a value, for {@link defineResource}: `z.string().check(immutable())`. An optional field can still be
 * added and removed; add a rule to its object to forbid that.
 */
export function immutable<T>(message = "field is immutable"): z.core.$ZodCheck<T> {
  return rule("self == oldSelf", message);
}

/** Returns the rules of a schema, and of the schema inside of it that has the same value. */
function rulesOf(schema: z.core.$ZodType): readonly unknown[] {
  const own = z.globalRegistry.get(schema)?.[KEYWORD];
  if (Array.isArray(own)) return own;
  const { innerType } = schema._zod.def as { readonly innerType?: z.core.$ZodType };
  return innerType === undefined ? [] : rulesOf(innerType);
}
