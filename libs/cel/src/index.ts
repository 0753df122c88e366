export { compilePattern } from "./functions/compile-pattern.ts";
export { compileRules } from "./rules/rule-tree.ts";
export type { CompiledRule, CompiledRules, RuleIssue, RuleTree } from "./rules/rule-tree.ts";
export type { Expression } from "./rules/compile-expression.ts";
export { RULE_REASONS } from "./rules/rule-shape.ts";
export type { RuleSchema, ValidationRule } from "./types/rule-schema.ts";
export { fromJson } from "./values/from-json.ts";
export { CelError, Optional } from "./values/value.ts";
export type { Value } from "./values/value.ts";
