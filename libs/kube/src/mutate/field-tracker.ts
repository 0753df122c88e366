import { isJsonObject, setOwn, type JsonObject, type JsonValue } from "@konverge/core";

/** The reads and writes at one path of an object. A path exists here if it, or a path below it, was touched. */
export interface TouchedField {
  /** True if the value as a whole counts, not only the touched members. */
  whole: boolean;
  readonly members: Map<string, TouchedField>;
}

export interface TrackedDraft {
  /** Behaves like the object and records accesses to it. */
  readonly draft: JsonObject;
  /** The accesses so far. */
  readonly touched: TouchedField;
}

const objectBehind = new WeakMap<object, JsonObject>();

/** Returns the object behind a tracked draft, to inspect it without recording a read. */
export function untracked<T extends object>(draft: T): T {
  return (objectBehind.get(draft) ?? draft) as T;
}

/**
 * Wraps `object` and records which parts a function reads and writes: members, missing members and whole values. A list
 * is one value, and so is an object whose members are enumerated (keys, spread, JSON). A value moved within the draft
 * is still tracked: comparing the result with the object that was read enumerates it.
 */
export function trackFields(object: JsonObject): TrackedDraft {
  const root: TouchedField = { whole: false, members: new Map() };
  const proxies = new WeakMap<JsonObject, JsonObject>();

  const touch = ({ members }: TouchedField, key: string, whole: boolean): TouchedField => {
    let member = members.get(key);
    if (member === undefined) members.set(key, (member = { whole: false, members: new Map() }));
    if (whole) member.whole = true;
    return member;
  };
  const read = (raw: JsonObject, touched: TouchedField, key: string): unknown => {
    const value: unknown = Object.hasOwn(raw, key) ? raw[key] : undefined;
    // A frozen object cannot change, and a proxy may not replace its members.
    const isOpen = isPlainObject(value) && !Object.isFrozen(value);
    const member = touch(touched, key, !isOpen);
    return isOpen ? track(value, member) : value;
  };
  const write = (raw: JsonObject, touched: TouchedField, key: string, value: unknown) => {
    touch(touched, key, true);
    setOwn(raw, key, value as JsonValue);
  };

  const track = (raw: JsonObject, touched: TouchedField): JsonObject => {
    if (objectBehind.has(raw)) return raw;
    const known = proxies.get(raw);
    if (known !== undefined) return known;
    const proxy = new Proxy(raw, {
      get: (target, key, receiver) =>
        isMember(target, key)
          ? read(target, touched, key)
          : (Reflect.get(target, key, receiver) as unknown),
      has(target, key) {
        if (isMember(target, key)) read(target, touched, key);
        return Reflect.has(target, key);
      },
      ownKeys(target) {
        touched.whole = true;
        return Reflect.ownKeys(target);
      },
      getOwnPropertyDescriptor(target, key) {
        const found = Reflect.getOwnPropertyDescriptor(target, key);
        if (typeof key !== "string") return found;
        const value = read(target, touched, key);
        return found !== undefined && "value" in found ? { ...found, value } : found;
      },
      set(target, key, value) {
        if (typeof key !== "string") return false;
        write(target, touched, key, value);
        return true;
      },
      defineProperty(target, key, { value }: PropertyDescriptor) {
        if (typeof key !== "string") return false;
        write(target, touched, key, value);
        return true;
      },
      deleteProperty(target, key) {
        if (typeof key === "string") touch(touched, key, true);
        return Reflect.deleteProperty(target, key);
      },
    });
    proxies.set(raw, proxy);
    objectBehind.set(proxy, raw);
    return proxy;
  };

  return { draft: track(object, root), touched: root };
}

/** Read from every object by `await` and by `JSON.stringify`. */
const PROBES = new Set(["then", "toJSON"]);

/** Inherited properties, such as `hasOwnProperty`, are not members. */
function isMember(target: JsonObject, key: string | symbol): key is string {
  if (typeof key !== "string") return false;
  return Object.hasOwn(target, key) || !(key in target || PROBES.has(key));
}

function isPlainObject(value: unknown): value is JsonObject {
  if (!isJsonObject(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
