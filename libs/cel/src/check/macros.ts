import { sortByKeys } from "../functions/lists.ts";
import type { ASTNode } from "../syntax/parse-expression.ts";
import {
  BOOL,
  DYN,
  ERROR,
  formatType,
  INT,
  isDynOrError,
  listOf,
  mapOf,
  optionalOf,
  valueOfOptional,
  type CelType,
} from "../types/cel-type.ts";
import {
  CelError,
  CelList,
  CelMap,
  Optional,
  typeNameOf,
  type MapKey,
  type Value,
} from "../values/value.ts";
import { compileAnd, compileOr } from "./compile-logic.ts";
import {
  bind,
  declareVariable,
  spend,
  type Checker,
  type Compiled,
  type Frame,
  type Scope,
} from "./compiled.ts";

interface MacroCall {
  readonly receiver: ASTNode | undefined;
  readonly args: readonly ASTNode[];
  readonly scope: Scope;
  readonly offset: number;
}
type Macro = (compiler: Checker, call: MacroCall) => Compiled;

/** A loop over a list or a map, with one or two variables. */
interface Loop {
  readonly scope: Scope;
  readonly offset: number;
  /** Types of the first variable and of the items. */
  readonly types: readonly [CelType, CelType];
  readonly frames: (frame: Frame) => Generator<{ readonly frame: Frame; readonly items: Items }>;
}
/** The values of the variables. */
type Items = readonly [Value, Value];

function openLoop(compiler: Checker, call: MacroCall, count: 1 | 2): Loop {
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

function nameOf(compiler: Checker, node: ASTNode): string {
  if (node.op === "id") return node.args;
  compiler.fail(node.start, "argument must be a simple name");
  return "";
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

/** `all` and `exists`: one deciding item is enough, even if others fail. */
const quantifier =
  (isAll: boolean, count: 1 | 2): Macro =>
  (compiler, call) => {
    const loop = openLoop(compiler, call, count);
    const condition = compiler.compile(argument(call, count), loop.scope);
    compiler.requireType(condition, BOOL);
    const combine = isAll ? compileAnd : compileOr;
    return {
      type: BOOL,
      offset: call.offset,
      run: (frame) =>
        combine(lazily(loop.frames(frame), ({ frame: inner }) => condition.run(inner)))(frame),
    };
  };

/** Turns a loop into functions that are run one after the other, as far as needed. */
function* lazily<T>(source: Iterable<T>, run: (item: T) => Value): Generator<Compiled["run"]> {
  for (const item of source) yield () => run(item);
}

const existsOne =
  (count: 1 | 2): Macro =>
  (compiler, call) => {
    const loop = openLoop(compiler, call, count);
    const holds = compileCondition(compiler, argument(call, count), loop, INT);
    return {
      type: BOOL,
      offset: call.offset,
      run: (frame) => {
        let found = 0;
        for (const { frame: inner } of loop.frames(frame)) if (holds(inner)) found++;
        return found === 1;
      },
    };
  };

const filter: Macro = (compiler, call) => {
  const loop = openLoop(compiler, call, 1);
  const type = listOf(loop.types[0]);
  const holds = compileCondition(compiler, argument(call, 1), loop, type);
  return {
    type,
    offset: call.offset,
    run: (frame) => {
      const kept: Value[] = [];
      for (const { frame: inner, items } of loop.frames(frame)) {
        if (holds(inner)) kept.push(items[0]);
      }
      return new CelList(kept);
    },
  };
};

/** `map`, and `transformList` with two variables; with one argument more, a filter. */
const transformList =
  (count: 1 | 2, hasFilter: boolean): Macro =>
  (compiler, call) => {
    const loop = openLoop(compiler, call, count);
    const result = compiler.compile(argument(call, count + (hasFilter ? 1 : 0)), loop.scope);
    const type = listOf(result.type);
    const holds = hasFilter
      ? compileCondition(compiler, argument(call, count), loop, type)
      : () => true;
    return {
      type,
      offset: call.offset,
      run: (frame) => {
        const made: Value[] = [];
        for (const { frame: inner } of loop.frames(frame)) {
          if (holds(inner)) made.push(result.run(inner));
        }
        return new CelList(made);
      },
    };
  };

const transformMap =
  (hasFilter: boolean): Macro =>
  (compiler, call) => {
    const loop = openLoop(compiler, call, 2);
    const result = compiler.compile(argument(call, hasFilter ? 3 : 2), loop.scope);
    const type = mapOf(loop.types[0], result.type);
    const holds = hasFilter
      ? compileCondition(compiler, argument(call, 2), loop, type)
      : () => true;
    return {
      type,
      offset: call.offset,
      run: (frame) => {
        const made: [MapKey, Value][] = [];
        for (const { frame: inner, items } of loop.frames(frame)) {
          if (holds(inner)) made.push([items[0] as MapKey, result.run(inner)]);
        }
        return new CelMap(made);
      },
    };
  };

const transformMapEntry =
  (hasFilter: boolean): Macro =>
  (compiler, call) => {
    const loop = openLoop(compiler, call, 2);
    const result = compiler.compile(argument(call, hasFilter ? 3 : 2), loop.scope);
    const type = compiler.bindings.resolve(result.type);
    const holds = hasFilter
      ? compileCondition(compiler, argument(call, 2), loop, type)
      : () => true;
    return {
      type: type.kind === "map" ? type : mapOf(DYN, DYN),
      offset: call.offset,
      run: (frame) => {
        const made = new Map<MapKey, Value>();
        for (const { frame: inner } of loop.frames(frame)) {
          if (!holds(inner)) continue;
          const one = result.run(inner);
          for (const [key, value] of one instanceof CelMap ? one.entries() : []) {
            if (made.has(key)) {
              throw new CelError(`insert failed: key ${String(key)} already exists`);
            }
            made.set(key, value);
          }
        }
        return new CelMap(made);
      },
    };
  };

/** Compiles a condition inside a loop, with the error that cel-go's expansion of the macro has. */
function compileCondition(
  compiler: Checker,
  node: ASTNode,
  { scope, offset }: { readonly scope: Scope; readonly offset: number },
  result: CelType,
): (frame: Frame) => boolean {
  const compiled = compiler.compile(node, scope);
  const branch: Compiled = { type: result, offset, run: () => null };
  compiler.call("_?_:_", [compiled, branch, branch], offset, false);
  return (frame) => {
    const value = compiled.run(frame);
    if (typeof value !== "boolean") throw new CelError("no such overload");
    return value;
  };
}

function argument({ args }: MacroCall, index: number): ASTNode {
  const arg = args[index];
  if (arg === undefined) throw new TypeError(`no argument ${index}`);
  return arg;
}

/** `has(a.b)`: true if the field is set. */
const has: Macro = (compiler, call) => {
  const node = argument(call, 0);
  if (node.op !== "." && node.op !== ".?") {
    compiler.fail(node.start, "invalid argument to has() macro");
    return { type: BOOL, offset: call.offset, run: () => false };
  }
  const [operand, field] = node.args;
  const from = compiler.compile(operand, call.scope);
  compiler.fieldType(from.type, field, call.offset);
  return {
    type: BOOL,
    offset: call.offset,
    run: (frame) => {
      const value = from.run(frame);
      const object = value instanceof Optional ? (value.value ?? null) : value;
      if (value instanceof Optional && value.value === undefined) return false;
      return object instanceof CelMap && object.get(field) !== undefined;
    },
  };
};

/** `optMap` and `optFlatMap`: an expression over the value of an optional. */
const optionalMap =
  (isFlat: boolean): Macro =>
  (compiler, call) => {
    const [variable, body] = [argument(call, 0), argument(call, 1)];
    const name = nameOf(compiler, variable);
    const receiver = call.receiver ?? variable;
    const from = compiler.compile(receiver, call.scope);
    const inner = valueOfOptional(compiler.bindings.resolve(from.type)) ?? DYN;
    const result = compiler.compile(body, declareVariable(call.scope, name, inner));
    return {
      type: isFlat ? result.type : optionalOf(result.type),
      offset: call.offset,
      run: (frame) => {
        const value = from.run(frame);
        if (!(value instanceof Optional)) throw new CelError("no such overload");
        if (value.value === undefined) return value;
        const made = result.run(bind(frame, name, value.value));
        return isFlat ? made : new Optional(made);
      },
    };
  };

const sortBy: Macro = (compiler, call) => {
  const loop = openLoop(compiler, call, 1);
  const key = compiler.compile(argument(call, 1), loop.scope);
  return {
    type: listOf(loop.types[0]),
    offset: call.offset,
    run: (frame) => {
      const items: Value[] = [];
      const keys: Value[] = [];
      for (const one of loop.frames(frame)) {
        items.push(one.items[0]);
        keys.push(key.run(one.frame));
      }
      return sortByKeys(new CelList(items), keys);
    },
  };
};

/** By name, whether the macro is called on a receiver, and number of arguments. */
const MACROS: Readonly<Record<string, Macro>> = {
  "has/1": has,
  ".all/2": quantifier(true, 1),
  ".all/3": quantifier(true, 2),
  ".exists/2": quantifier(false, 1),
  ".exists/3": quantifier(false, 2),
  ".exists_one/2": existsOne(1),
  ".exists_one/3": existsOne(2),
  ".existsOne/2": existsOne(1),
  ".existsOne/3": existsOne(2),
  ".filter/2": filter,
  ".map/2": transformList(1, false),
  ".map/3": transformList(1, true),
  ".transformList/3": transformList(2, false),
  ".transformList/4": transformList(2, true),
  ".transformMap/3": transformMap(false),
  ".transformMap/4": transformMap(true),
  ".transformMapEntry/3": transformMapEntry(false),
  ".transformMapEntry/4": transformMapEntry(true),
  ".optMap/2": optionalMap(false),
  ".optFlatMap/2": optionalMap(true),
  ".sortBy/2": sortBy,
};

/** Returns the macro of this name and number of arguments. */
export function findMacro(name: string, isMember: boolean, count: number): Macro | undefined {
  const key = `${isMember ? "." : ""}${name}/${count}`;
  return Object.hasOwn(MACROS, key) ? MACROS[key] : undefined;
}
