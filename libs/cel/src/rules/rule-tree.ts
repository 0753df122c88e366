import type { JsonValue } from "@konverge/core";
import { additionalSchema, type RuleSchema, type ValidationRule } from "../types/rule-schema.ts";
import { schemaType } from "../types/schema-type.ts";
import type { CelType } from "../types/cel-type.ts";
import { compileExpression, type Expression } from "./compile-expression.ts";
import { normalizeFieldPath } from "./field-path.ts";
import { findShapeIssues } from "./rule-shape.ts";

/** The rules of one schema and of the schemas inside it. Parts without rules are left out. */
export interface RuleTree {
  readonly schema: RuleSchema;
  /** The root of an object with `apiVersion`, `kind` and `metadata`. */
  readonly isRoot: boolean;
  readonly rules: readonly CompiledRule[];
  readonly properties: ReadonlyMap<string, RuleTree>;
  readonly items: RuleTree | undefined;
  readonly additional: RuleTree | undefined;
}

export interface CompiledRule {
  readonly rule: ValidationRule;
  /** Undefined if the rule is invalid, for example because it was stored by another version. */
  readonly expression: Expression | undefined;
  readonly message: Expression | undefined;
  /** The field of an error, relative to the value. */
  readonly fieldPath: string;
}

/** Why a rule is invalid. */
export interface RuleIssue {
  readonly kind: "invalid" | "notSupported" | "required";
  /** Place in the schema, for example `properties[a].x-kubernetes-validations[0].rule`. */
  readonly path: string;
  /** Place in a value, for example `.a`, `.list[]` or `.map.*`. */
  readonly valuePath: string;
  readonly detail: string;
  readonly value?: JsonValue;
  /** Set instead of `value` if the real server shows the whole rule. */
  readonly rule?: ValidationRule;
  /** True for errors of the schema, which hide errors of expressions further up. */
  readonly isShape: boolean;
  /** True if the only errors are functions that a newer API server may know. */
  readonly hasUnknownFunction?: boolean;
}

type Report = (
  member: string,
  issue: Pick<RuleIssue, "detail" | "hasUnknownFunction" | "rule" | "value">,
) => void;

interface Place {
  readonly path: string;
  readonly valuePath: string;
  /** The schema, because of which items of a list have no earlier value. */
  readonly uncorrelated: string | undefined;
}

export interface CompiledRules {
  /** Undefined if there are no rules. */
  readonly tree: RuleTree | undefined;
  readonly issues: readonly RuleIssue[];
}

/** Checks and compiles all rules of a schema. `path` is the path of the schema, `isRoot` true for that of an object. */
export function compileRules(schema: RuleSchema, path = "", isRoot = false): CompiledRules {
  if (!hasRules(schema)) return { tree: undefined, issues: [] };
  const issues: RuleIssue[] = [];
  const place = { path, valuePath: "", uncorrelated: undefined };
  const tree = compileNode(schema, { place, issues, isRoot });
  return { tree, issues };
}

function hasRules(schema: RuleSchema): boolean {
  const additional = additionalSchema(schema);
  return (
    (schema["x-kubernetes-validations"] ?? []).length > 0 ||
    Object.values(schema.properties ?? {}).some(hasRules) ||
    (schema.items !== undefined && hasRules(schema.items)) ||
    (additional !== undefined && hasRules(additional))
  );
}

interface Walk {
  readonly place: Place;
  readonly issues: RuleIssue[];
  readonly isRoot: boolean;
}

function compileNode(schema: RuleSchema, { place, issues, isRoot }: Walk): RuleTree | undefined {
  const before = issues.length;
  const under = (inner: RuleSchema, part: string, value: string) => {
    const { uncorrelated } = place;
    const isItem = part === "items";
    const isLoose = isItem && schema["x-kubernetes-list-type"] !== "map";
    const path = place.path === "" ? part : `${place.path}.${part}`;
    return compileNode(inner, {
      place: {
        path,
        valuePath: `${place.valuePath}${value}`,
        uncorrelated: uncorrelated ?? (isLoose ? place.path : undefined),
      },
      issues,
      isRoot: inner["x-kubernetes-embedded-resource"] === true,
    });
  };
  const properties = new Map<string, RuleTree>();
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    const tree = under(member, `properties[${name}]`, `.${name}`);
    if (tree !== undefined) properties.set(name, tree);
  }
  const additional = additionalSchema(schema);
  const tree: RuleTree = {
    schema,
    isRoot,
    properties,
    items: schema.items && under(schema.items, "items", "[]"),
    additional: additional && under(additional, "additionalProperties", ".*"),
    rules: compileOwn(schema, { place, issues, isRoot }, before),
  };
  const isEmpty =
    tree.rules.length + properties.size === 0 &&
    tree.items === undefined &&
    tree.additional === undefined;
  return isEmpty ? undefined : tree;
}

function compileOwn(
  schema: RuleSchema,
  { place, issues, isRoot }: Walk,
  before: number,
): CompiledRule[] {
  // The real server reads null as a rule without members.
  const rules = (schema["x-kubernetes-validations"] ?? []).map((one) => one ?? { rule: "" });
  if (rules.length === 0) return [];
  const type = schemaType(schema, "selfType", isRoot);
  const path = (index: number, member: string) =>
    `${place.path === "" ? "" : `${place.path}.`}x-kubernetes-validations[${index}].${member}`;
  for (const [index, rule] of rules.entries()) {
    for (const { member, ...issue } of findShapeIssues(rule, schema)) {
      const { valuePath } = place;
      issues.push({ ...issue, path: path(index, member), valuePath, isShape: true });
    }
  }
  const isHidden = issues.slice(before).some(({ isShape }) => isShape);
  return rules.map((rule, index) => {
    const found: RuleIssue[] = [];
    const report: Report = (member, issue) => {
      const { valuePath } = place;
      found.push({
        kind: "invalid",
        path: path(index, member),
        valuePath,
        isShape: false,
        ...issue,
      });
    };
    const compiled = compileOne(rule, schema, type, { report, place });
    if (!isHidden) issues.push(...found);
    return compiled;
  });
}

function compileOne(
  rule: ValidationRule,
  schema: RuleSchema,
  type: CelType | undefined,
  at: { readonly report: Report; readonly place: Place },
): CompiledRule {
  const fieldPath = normalizeFieldPath(rule.fieldPath ?? "", schema) ?? "";
  const without = { rule, expression: undefined, message: undefined, fieldPath };
  if (rule.rule.trim() === "") return without;
  if (type === undefined) {
    at.report("rule", { rule, detail: "rules need a type that CEL knows" });
    return without;
  }
  const { expression, usesOldSelf, hasUnknownFunction } = compileRule(rule, type, at.report);
  const message = expression && compileMessage(rule, type, at.report);
  const { uncorrelated } = at.place;
  if (usesOldSelf && uncorrelated !== undefined) {
    const detail = `oldSelf cannot be used on the uncorrelatable portion of the schema within ${uncorrelated}`;
    at.report("rule", { value: rule.rule, detail });
  }
  if (!usesOldSelf && rule.optionalOldSelf !== undefined) {
    const detail = "may not be set if oldSelf is not used in rule";
    at.report("optionalOldSelf", { value: rule.optionalOldSelf, detail, hasUnknownFunction });
  }
  return { rule, expression, message, fieldPath };
}

function compileRule(
  rule: ValidationRule,
  type: CelType,
  report: Report,
): {
  readonly expression: Expression | undefined;
  readonly usesOldSelf: boolean;
  readonly hasUnknownFunction: boolean;
} {
  const result = compileExpression(rule.rule, type, rule.optionalOldSelf === true);
  const { expression } = result;
  if (expression === undefined) {
    const { error, hasUnknownFunction } = result;
    report("rule", { rule, detail: `compilation failed: ${error}`, hasUnknownFunction });
    return { expression, usesOldSelf: false, hasUnknownFunction };
  }
  const { usesOldSelf, constantError } = expression;
  if (expression.type !== "bool") {
    report("rule", { rule, detail: "cel expression must evaluate to a bool" });
    return { expression: undefined, usesOldSelf: false, hasUnknownFunction: false };
  }
  if (constantError !== undefined) {
    report("rule", { rule, detail: `program instantiation failed: ${constantError}` });
    return { expression: undefined, usesOldSelf, hasUnknownFunction: false };
  }
  return { expression, usesOldSelf, hasUnknownFunction: false };
}

function compileMessage(
  rule: ValidationRule,
  type: CelType,
  report: Report,
): Expression | undefined {
  const text = rule.messageExpression ?? "";
  if (text.trim() === "") return undefined;
  const result = compileExpression(text, type, rule.optionalOldSelf === true);
  const { expression } = result;
  if (expression === undefined) {
    const { error, hasUnknownFunction } = result;
    const detail = `messageExpression compilation failed: ${error}`;
    report("messageExpression", { rule, detail, hasUnknownFunction });
  } else if (expression.type !== "string") {
    report("messageExpression", { rule, detail: "messageExpression must evaluate to a string" });
  } else if (expression.constantError !== undefined) {
    const detail = `messageExpression instantiation failed: ${expression.constantError}`;
    report("messageExpression", { rule, detail });
  } else return expression;
  return undefined;
}
