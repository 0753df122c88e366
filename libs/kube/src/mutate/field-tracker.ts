import { isJsonObject, setOwn, type JsonObject, type JsonValue } from "@konverge/core";

/** What was read or written at one place of an object. A place is here because it, or one below it, was touched. */
export interface TouchedField {
  /** Its value as a whole counts, not only what was touched below. */
  whole: boolean;
  readonly members: Map<string, TouchedField>;
}

export interface TrackedDraft {
  /** Behaves as the object does, and remembers what is done with it. */
  readonly draft: JsonObject;
  /** What was touched until now. */
  readonly touched: TouchedField;
}

const objectBehind = new WeakMap<object, JsonObject>();

/** The object behind a tracked draft, for whoever must look at all of it without that counting as a read. */
export function untracked<T extends object>(draft: T): T {
  return (objectBehind.get(draft) ?? draft) as T;
}

/**
 * Lets a function change `object` while it is remembered what it reads and writes: members, members that are absent, and
 * wholes. A list is one value, so is an object whose members are enumerated (keys, spread, JSON). What is taken from the draft
 * and put elsewhere in it still tracks there: whoever compares the result with what was read enumerates it.
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
    // Of what is frozen nothing can change, and a proxy may not stand in for its members.
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

/** Asked of every object by `await` and by `JSON.stringify`. */
const PROBES = new Set(["then", "toJSON"]);

/** What every object inherits, such as `hasOwnProperty`, is no member. */
function isMember(target: JsonObject, key: string | symbol): key is string {
  if (typeof key !== "string") return false;
  return Object.hasOwn(target, key) || !(key in target || PROBES.has(key));
}

function isPlainObject(value: unknown): value is JsonObject {
  if (!isJsonObject(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
