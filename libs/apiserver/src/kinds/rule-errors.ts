import { compileRules, RULE_REASONS, type RuleIssue, type ValidationRule } from "@konverge/cel";
import type { JsonObject } from "@konverge/core";
import { invalid, notSupported, required, type FieldError } from "../errors/field-error.ts";
import type { Schema } from "../schema/schema.ts";

/** Returns the errors of the CEL rules of a definition's schema. */
export function ruleErrors(schema: JsonObject, path: string): FieldError[] {
  return compileRules(schema as Schema, path, true).issues.map(toFieldError);
}

function toFieldError({ kind, path, value = "", detail, rule }: RuleIssue): FieldError {
  if (rule !== undefined) {
    const body = `Invalid value: ${showRule(rule)}: ${detail}`;
    return { type: "FieldValueInvalid", field: path, body };
  }
  if (kind === "required") return required(path, detail);
  return kind === "notSupported"
    ? notSupported(path, value, RULE_REASONS)
    : invalid(path, value, detail);
}

/** Formats a rule as the real server shows its internal type. */
function showRule(rule: ValidationRule): string {
  const { message = "", messageExpression = "", reason, fieldPath = "", optionalOldSelf } = rule;
  const text = JSON.stringify({
    Rule: rule.rule,
    Message: message,
    MessageExpression: messageExpression,
    Reason: reason ?? null,
    FieldPath: fieldPath,
    OptionalOldSelf: optionalOldSelf ?? null,
  });
  // Go escapes what could end a script in HTML.
  return text.replaceAll(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
