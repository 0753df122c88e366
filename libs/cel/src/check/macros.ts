import { BOOL, DYN, optionalOf, valueOfOptional } from "../types/cel-type.ts";
import { CelError, CelMap, Optional } from "../values/value.ts";
import { bind, declareVariable } from "./compiled.ts";
import {
  existsOne,
  filterList,
  quantifier,
  sortBy,
  transformList,
  transformMap,
  transformMapEntry,
} from "./loop-macros.ts";
import { argument, nameOf, type Macro } from "./macro.ts";

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
  ".filter/2": filterList,
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
