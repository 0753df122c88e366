import {
  CelError,
  fromJson,
  Optional,
  type CompiledRule,
  type Expression,
  type RuleSchema,
  type RuleTree,
  type Value,
} from "@konverge/cel";
import { isJsonObject, jsonEquals, type JsonObject, type JsonValue } from "@konverge/core";
import { duplicate, forbidden, invalid, required, type FieldError } from "../errors/field-error.ts";

const MAX_MESSAGE_BYTES = 5 * 1024;

/** The result of the rules of an object. */
export interface RuleResults {
  readonly errors: FieldError[];
  /** Violations in parts that did not change, which are only reported (ratcheting). */
  readonly warnings: FieldError[];
}

/** A value and its earlier value. */
interface Correlated {
  readonly schema: RuleSchema;
  readonly value: JsonValue;
  readonly before: JsonValue;
}

/** The nearest pairs of a value and its earlier value. Absent for a creation. */
interface Ratchet {
  /** Undefined inside a part whose earlier value cannot be found. */
  readonly current: Correlated | undefined;
  readonly parent: Correlated | undefined;
}

interface Place {
  readonly path: string;
  readonly before: JsonValue | undefined;
  readonly ratchet: Ratchet;
}

/** Runs all rules of an object. `before` is the replaced object. */
export function validateRules(
  tree: RuleTree | undefined,
  value: JsonObject,
  before: JsonObject | undefined,
): RuleResults {
  const results: RuleResults = { errors: [], warnings: [] };
  if (tree === undefined) return results;
  const current = before && { schema: tree.schema, value, before };
  visit(tree, value, { path: "", before, ratchet: { current, parent: undefined } }, results);
  return results;
}

function visit(tree: RuleTree, value: JsonValue, place: Place, results: RuleResults): void {
  if (value === null) return;
  runRules(tree, value, place, results);
  if (Array.isArray(value)) visitList(tree, value, place, results);
  else if (isJsonObject(value)) visitObject(tree, value, place, results);
}

function visitObject(
  tree: RuleTree,
  value: JsonObject,
  { path, before, ratchet }: Place,
  results: RuleResults,
): void {
  const old = isJsonObject(before) ? before : {};
  for (const [name, member] of Object.entries(value)) {
    const inner = tree.additional ?? tree.properties.get(name);
    if (inner === undefined) continue;
    const at = tree.additional === undefined ? joinPath(path, name) : `${path}[${name}]`;
    const oldMember = Object.hasOwn(old, name) ? old[name] : undefined;
    const next = descend(ratchet, inner.schema, member, oldMember);
    visit(inner, member, { path: at, before: oldMember ?? undefined, ratchet: next }, results);
  }
}

const joinPath = (path: string, name: string) => (path === "" ? name : `${path}.${name}`);

function visitList(
  { schema, items }: RuleTree,
  value: readonly JsonValue[],
  { path, before, ratchet }: Place,
  results: RuleResults,
): void {
  if (items === undefined) return;
  for (const [index, item] of value.entries()) {
    const old = findItem(schema, before, item);
    const next = descend(ratchet, items.schema, item, old);
    visit(items, item, { path: `${path}[${index}]`, before: old, ratchet: next }, results);
  }
}

/** Finds the earlier value of an item: only a map of list type has keys to find it by. */
function findItem(
  schema: RuleSchema,
  before: JsonValue | undefined,
  item: JsonValue,
): JsonValue | undefined {
  if (schema["x-kubernetes-list-type"] !== "map" || !Array.isArray(before)) return undefined;
  const keys = schema["x-kubernetes-list-map-keys"] ?? [];
  if (!isJsonObject(item)) return undefined;
  return before.find(
    (one) =>
      isJsonObject(one) && keys.every((key) => jsonEquals(one[key] ?? null, item[key] ?? null)),
  );
}

function descend(
  ratchet: Ratchet,
  schema: RuleSchema,
  value: JsonValue,
  before: JsonValue | undefined,
): Ratchet {
  if (ratchet.current === undefined) return ratchet;
  const current = before === undefined ? undefined : { schema, value, before };
  return { current, parent: ratchet.current };
}

function isUnchanged({ current, parent }: Ratchet): boolean {
  const one = current ?? parent;
  return one !== undefined && isSame(one);
}

/** Compares deeply; the order of a map of list type does not count. */
function isSame({ schema, value, before }: Correlated): boolean {
  if (Array.isArray(value) && schema["x-kubernetes-list-type"] === "map") {
    return (
      Array.isArray(before) &&
      before.length === value.length &&
      value.every((item) => {
        const old = findItem(schema, before, item);
        const inner = schema.items ?? {};
        return old !== undefined && isSame({ schema: inner, value: item, before: old });
      })
    );
  }
  return jsonEquals(value, before);
}

function runRules(tree: RuleTree, value: JsonValue, place: Place, results: RuleResults): void {
  if (tree.rules.length === 0) return;
  const { schema, isRoot, rules } = tree;
  const self = fromJson(schema, value, isRoot);
  const old = place.before === undefined ? undefined : fromJson(schema, place.before, isRoot);
  for (const compiled of rules) {
    const outcome = runRule(compiled, schema, { self, old, value, path: place.path });
    if (outcome === undefined) continue;
    const isRatcheted =
      outcome.isViolation &&
      compiled.expression?.usesOldSelf !== true &&
      isUnchanged(place.ratchet);
    (isRatcheted ? results.warnings : results.errors).push(outcome.error);
  }
}

interface Input {
  readonly self: Value;
  readonly old: Value | undefined;
  readonly value: JsonValue;
  readonly path: string;
}
interface Outcome {
  readonly error: FieldError;
  /** False if the rule could not be evaluated. */
  readonly isViolation: boolean;
}

function runRule(
  compiled: CompiledRule,
  schema: RuleSchema,
  { self, old, value, path }: Input,
): Outcome | undefined {
  const { rule, expression } = compiled;
  const failed = (why: string): Outcome => ({
    error: invalid(path, schema.type ?? "", why),
    isViolation: false,
  });
  if (expression === undefined) return failed("rule compile error: the rule is invalid");
  const isOptional = rule.optionalOldSelf === true;
  if (expression.usesOldSelf && old === undefined && !isOptional) return undefined;
  const oldSelf = isOptional ? new Optional(old) : old;
  const result = evaluate(expression, self, oldSelf);
  if (result instanceof CelError) return failed(describeFailure(result, rule));
  if (result === true) return undefined;
  const detail = messageOf(compiled, self, old) ?? defaultMessage(rule);
  const field = compiled.fieldPath === "" ? path : joinPath(path, compiled.fieldPath);
  return {
    error: violation(field, value, schema, { detail, reason: rule.reason }),
    isViolation: true,
  };
}

function evaluate(
  expression: Expression,
  self: Value,
  oldSelf: Value | undefined,
): CelError | Value {
  try {
    return expression.evaluate(self, oldSelf);
  } catch (error) {
    if (error instanceof CelError) return error;
    throw error;
  }
}

const nameOfRule = ({ rule, message = "" }: CompiledRule["rule"]) => (message || rule).trim();

const defaultMessage = ({ rule, message = "" }: CompiledRule["rule"]) =>
  message === "" ? `failed rule: ${rule.trim()}` : message.trim();

function describeFailure({ message }: CelError, rule: CompiledRule["rule"]): string {
  if (message.startsWith("no such overload")) {
    return `'${message}': call arguments did not match a supported operator, function or macro signature for rule: ${nameOfRule(rule)}`;
  }
  if (message.startsWith("operation cancelled: actual cost limit exceeded")) {
    return `'${message}': no further validation rules will be run due to call cost exceeds limit for rule: ${nameOfRule(rule)}`;
  }
  return `${message} evaluating rule: ${nameOfRule(rule)}`;
}

/** The message of `messageExpression`, if it can be evaluated to one line. */
function messageOf(
  { message }: CompiledRule,
  self: Value,
  old: Value | undefined,
): string | undefined {
  const value = message && evaluate(message, self, old);
  if (typeof value !== "string") return undefined;
  const text = value.trim();
  const isUsable =
    text !== "" && !text.includes("\n") && Buffer.byteLength(text) <= MAX_MESSAGE_BYTES;
  return isUsable ? text : undefined;
}

function violation(
  field: string,
  value: JsonValue,
  { type }: RuleSchema,
  { detail, reason }: { readonly detail: string; readonly reason: string | undefined },
): FieldError {
  const isOmitted = type === "object" || type === "array";
  switch (reason) {
    case "FieldValueForbidden":
      return forbidden(field, detail);
    case "FieldValueRequired":
      return required(field, detail);
    case "FieldValueDuplicate":
      return isOmitted ? { type: reason, field, body: "Duplicate value" } : duplicate(field, value);
    default:
      return isOmitted
        ? { type: "FieldValueInvalid", field, body: `Invalid value: ${detail}` }
        : invalid(field, value, detail);
  }
}
