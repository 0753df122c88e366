import { DYN, isDynOrError, mapParts, valueOfOptional, type CelType } from "./cel-type.ts";

/** The types that variables stand for, as cel-go's checker finds them. */
export class TypeBindings {
  #bound = new Map<string, CelType>();
  #count = 0;

  /** Returns a new variable. */
  fresh(): CelType {
    return { kind: "variable", name: `_var${this.#count++}` };
  }

  /** Binds variables so that each type is assignable to its counterpart. Binds nothing if one is not. */
  assignAll(from: readonly CelType[], to: readonly CelType[]): boolean {
    const before = new Map(this.#bound);
    const isAssignable =
      from.length === to.length &&
      from.every((type, index) => this.#assign(type, to[index] ?? DYN));
    if (!isAssignable) this.#bound = before;
    return isAssignable;
  }

  assign(from: CelType, to: CelType): boolean {
    return this.assignAll([from], [to]);
  }

  /** Replaces bound variables; with `orDyn` also the others. */
  resolve(type: CelType, orDyn = false): CelType {
    if (type.kind !== "variable") return mapParts(type, (part) => this.resolve(part, orDyn));
    const bound = this.#bound.get(type.name);
    if (bound !== undefined) return this.resolve(bound, orDyn);
    return orDyn ? DYN : type;
  }

  #assign(from: CelType, to: CelType): boolean {
    if (to.kind === "variable") {
      const wasBound = this.#bound.has(to.name) || isExact(from, to);
      if (this.#bind(from, to)) return true;
      if (wasBound) return false;
    }
    if (from.kind === "variable") return this.#bind(to, from);
    if (isDynOrError(from) || isDynOrError(to)) return true;
    if (from.kind === "null") return isNullable(to);
    if (to.kind === "null") return isNullable(from);
    if (from.kind === "list" && to.kind === "list") return this.#assign(from.element, to.element);
    if (from.kind === "map" && to.kind === "map") {
      return this.#assign(from.key, to.key) && this.#assign(from.value, to.value);
    }
    if (from.kind === "opaque" && to.kind === "opaque") {
      return (
        from.name === to.name &&
        from.parameters.every((type, index) => this.#assign(type, to.parameters[index] ?? DYN))
      );
    }
    if (from.kind === "object" && to.kind === "object") return from.name === to.name;
    return from.kind === to.kind;
  }

  #bind(type: CelType, variable: { readonly name: string; readonly kind: "variable" }): boolean {
    if (isExact(type, variable)) return true;
    const bound = this.#bound.get(variable.name);
    if (bound !== undefined) {
      if (isExact(type, bound)) return true;
      if (!this.#assign(type, bound)) return false;
      const general = mostGeneral(type, bound);
      if (!this.#occurs(variable.name, general)) this.#bound.set(variable.name, general);
      return true;
    }
    if (this.#occurs(variable.name, type)) return false;
    this.#bound.set(variable.name, type);
    return true;
  }

  #occurs(name: string, type: CelType): boolean {
    switch (type.kind) {
      case "variable": {
        if (type.name === name) return true;
        const bound = this.#bound.get(type.name);
        return bound !== undefined && this.#occurs(name, bound);
      }
      case "list":
        return this.#occurs(name, type.element);
      case "map":
        return this.#occurs(name, type.key) || this.#occurs(name, type.value);
      case "opaque":
        return type.parameters.some((one) => this.#occurs(name, one));
      case "type":
        return type.of !== undefined && this.#occurs(name, type.of);
      default:
        return false;
    }
  }
}

/** Returns the less specific of two types that are assignable to each other. */
export const mostGeneral = (left: CelType, right: CelType): CelType =>
  isAtMostAsSpecific(left, right) ? left : right;

function isAtMostAsSpecific(left: CelType, right: CelType): boolean {
  if (left.kind === "dyn" || left.kind === "variable") return true;
  if (right.kind === "dyn" || right.kind === "variable") return false;
  if (left.kind === "list" && right.kind === "list") {
    return isAtMostAsSpecific(left.element, right.element);
  }
  if (left.kind === "map" && right.kind === "map") {
    return isAtMostAsSpecific(left.key, right.key) && isAtMostAsSpecific(left.value, right.value);
  }
  if (left.kind === "opaque" && right.kind === "opaque") {
    return (
      left.name === right.name &&
      left.parameters.every((type, index) =>
        isAtMostAsSpecific(type, right.parameters[index] ?? DYN),
      )
    );
  }
  return left.kind === "type" ? right.kind === "type" : isExact(left, right);
}

/** Returns true if both types are the same, without binding anything. */
export function isExact(left: CelType, right: CelType): boolean {
  if (left.kind !== right.kind) return false;
  if (left.kind === "list" && right.kind === "list") return isExact(left.element, right.element);
  if (left.kind === "map" && right.kind === "map") {
    return isExact(left.key, right.key) && isExact(left.value, right.value);
  }
  if (left.kind === "opaque" && right.kind === "opaque") {
    return (
      left.name === right.name &&
      left.parameters.every((type, index) => isExact(type, right.parameters[index] ?? DYN))
    );
  }
  if (left.kind === "object" && right.kind === "object") return left.name === right.name;
  if (left.kind === "variable" && right.kind === "variable") return left.name === right.name;
  if (left.kind === "type" && right.kind === "type") {
    if (left.of === undefined || right.of === undefined) return left.of === right.of;
    return isExact(left.of, right.of);
  }
  return true;
}

const isNullable = (type: CelType): boolean =>
  type.kind === "null" ||
  type.kind === "object" ||
  type.kind === "duration" ||
  type.kind === "timestamp" ||
  type.kind === "opaque" ||
  valueOfOptional(type) !== undefined;
