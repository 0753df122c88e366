import type { JsonValue } from "@konverge/core";
import type { RuleSchema, ValidationRule } from "../types/rule-schema.ts";
import { normalizeFieldPath } from "./field-path.ts";

/** The reasons that a rule may give to its errors. */
export const RULE_REASONS: readonly string[] = [
  "FieldValueDuplicate",
  "FieldValueForbidden",
  "FieldValueInvalid",
  "FieldValueRequired",
];

interface ShapeIssue {
  readonly kind: "invalid" | "notSupported" | "required";
  readonly member: string;
  readonly detail: string;
  readonly value?: JsonValue;
}

const hasLineBreak = (text: string) => /[\n\r]/.test(text);

/** Returns the errors of a rule's members, except those of its expressions. */
export function findShapeIssues(rule: ValidationRule, schema: RuleSchema): ShapeIssue[] {
  return [
    ...ruleIssues(rule),
    ...(isBlank(rule.messageExpression)
      ? [required("messageExpression", "messageExpression must be non-empty if specified")]
      : []),
    ...reasonIssues(rule),
    ...fieldPathIssues(rule, schema),
  ];
}

const isBlank = (text: string | undefined) =>
  text !== undefined && text !== "" && text.trim() === "";

const required = (member: string, detail: string): ShapeIssue => ({
  kind: "required",
  member,
  detail,
});

function ruleIssues({ rule, message = "" }: ValidationRule): ShapeIssue[] {
  if (rule.trim() === "") return [required("rule", "rule is not specified")];
  const invalid = (detail: string): ShapeIssue[] => [
    { kind: "invalid", member: "message", value: message, detail },
  ];
  if (isBlank(message)) return invalid("must be non-empty if specified");
  if (hasLineBreak(message.trim())) return invalid("must not contain line breaks");
  if (hasLineBreak(rule.trim()) && message.trim() === "") {
    return [required("message", "message must be specified if rule contains line breaks")];
  }
  return [];
}

function reasonIssues({ reason }: ValidationRule): ShapeIssue[] {
  if (reason === undefined || RULE_REASONS.includes(reason)) return [];
  return [{ kind: "notSupported", member: "reason", value: reason, detail: "" }];
}

function fieldPathIssues({ fieldPath = "" }: ValidationRule, schema: RuleSchema): ShapeIssue[] {
  if (fieldPath === "") return [];
  const invalid = (detail: string): ShapeIssue => ({
    kind: "invalid",
    member: "fieldPath",
    value: fieldPath,
    detail,
  });
  return [
    ...(isBlank(fieldPath) ? [invalid("must be non-empty if specified")] : []),
    ...(hasLineBreak(fieldPath) ? [invalid("must not contain line breaks")] : []),
    ...(normalizeFieldPath(fieldPath, schema) === undefined
      ? [invalid("must be a valid path")]
      : []),
  ];
}
