import type { ASTNode } from "../syntax/parse-expression.ts";
import { ERROR, DYN, formatType, INT, isDynOrError, type CelType } from "../types/cel-type.ts";
import { CelError, CelList, CelMap, typeNameOf, type Value } from "../values/value.ts";
import {
  bind,
  declareVariable,
  spend,
  type Checker,
  type Compiled,
  type Frame,
  type Scope,
} from "./compiled.ts";
import { nameOf, type MacroCall } from "./macro.ts";

/** A loop over a list or a map, with one or two variables. */
export interface Loop {
  readonly scope: Scope;
  readonly offset: number;
  /** Types of the first variable and of the items. */
  readonly types: readonly [CelType, CelType];
  readonly frames: (frame: Frame) => Generator<{ readonly frame: Frame; readonly items: Items }>;
}
/** The values of the variables. */
type Items = readonly [Value, Value];

/** Opens the loop of a macro over its receiver, with variables named by the first `count` arguments. */
export function openLoop(compiler: Checker, call: MacroCall, count: 1 | 2): Loop {
  const { receiver, args, scope } = call;
  const range = receiver === undefined ? undefined : compiler.compile(receiver, scope);
  const names = args.slice(0, count).map((arg) => nameOf(compiler, arg));
  const types = loopTypes(compiler, range, count);
  const inner = names.reduce<Scope>(
    (outer, name, index) => declareVariable(outer, name, types[index] ?? ERROR),
    scope,
  );
  return {
    scope: inner,
    offset: call.offset,
    types,
    *frames(frame) {
      for (const items of itemsOf(range?.run(frame) ?? null, count)) {
        spend(frame.budget, 1);
        const filled = names.reduce((outer, name, index) => {
          return bind(outer, name, items[index] ?? null);
        }, frame);
        yield { frame: filled, items };
      }
    },
  };
}

function loopTypes(
  compiler: Checker,
  range: Compiled | undefined,
  count: number,
): readonly [CelType, CelType] {
  const type = compiler.bindings.resolve(range?.type ?? ERROR);
  if (type.kind === "list") return count === 1 ? [type.element, type.element] : [INT, type.element];
  if (type.kind === "map") return [type.key, count === 1 ? type.key : type.value];
  if (isDynOrError(type) || type.kind === "variable") {
    compiler.bindings.assign(DYN, type);
    return [DYN, DYN];
  }
  const text = `expression of type '${formatType(type)}' cannot be range of a comprehension (must be list, map, or dynamic)`;
  compiler.fail(range?.offset ?? 0, text);
  return [ERROR, ERROR];
}

function* itemsOf(range: Value, count: number): Generator<Items> {
  if (range instanceof CelList) {
    for (const [index, item] of range.items.entries()) {
      yield count === 1 ? [item, item] : [BigInt(index), item];
    }
  } else if (range instanceof CelMap) {
    for (const [key, value] of range.entries()) yield [key, value];
  } else throw new CelError(`got '${goTypeOf(range)}', expected iterable type`);
}

function goTypeOf(value: Value): string {
  const name = typeNameOf(value).replace("google.protobuf.", "");
  return `types.${name.slice(0, 1).toUpperCase()}${name.slice(1)}`;
}

/**
 * Compiles the condition of a loop whose value has the type `result`, with the error that cel-go's expansion of the macro
 * has. Without a condition, it holds.
 */
export function compileCondition(
  compiler: Checker,
  node: ASTNode | undefined,
  { scope, offset }: Loop,
  result: CelType,
): (frame: Frame) => boolean {
  if (node === undefined) return () => true;
  const compiled = compiler.compile(node, scope);
  const branch: Compiled = { type: result, offset, run: () => null };
  compiler.call("_?_:_", [compiled, branch, branch], offset, false);
  return (frame) => {
    const value = compiled.run(frame);
    if (typeof value !== "boolean") throw new CelError("no such overload");
    return value;
  };
}
