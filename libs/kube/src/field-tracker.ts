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
  /** What was touched until now. Ends the tracking: the object itself holds the result and nothing that tracks. */
  finish(): TouchedField;
}

interface Tracked {
  readonly raw: JsonObject;
  readonly touched: TouchedField;
}

const trackedBy = new WeakMap<object, Tracked>();

/** The object behind a tracked draft, for whoever must look at all of it without that counting as a read. */
export function untracked<T extends object>(draft: T): T {
  return (trackedBy.get(draft)?.raw ?? draft) as T;
}

/**
 * Lets a function change `object` while it is remembered what it reads and writes: members, members that are absent, and
 * wholes. A list is one value, so is an object whose members are enumerated (keys, spread, JSON), or that is put elsewhere.
 */
export function trackFields(object: JsonObject): TrackedDraft {
  const root: TouchedField = { whole: false, members: new Map() };
  const proxies = new WeakMap<JsonObject, JsonObject>();
  /** A list, or an object that was put in, can hold what was taken from the draft. Else nothing need be searched. */
  let mayHold = false;

  const touch = ({ members }: TouchedField, key: string, whole: boolean): TouchedField => {
    let member = members.get(key);
    if (member === undefined) members.set(key, (member = { whole: false, members: new Map() }));
    if (whole) member.whole = true;
    return member;
  };
  /** The raw value of what is put somewhere; what comes from the draft itself is read by that. */
  const release = <V>(value: V): V => {
    const tracked = isObject(value) ? trackedBy.get(value) : undefined;
    if (tracked === undefined) return value;
    tracked.touched.whole = true;
    return tracked.raw as V;
  };
  const read = (raw: JsonObject, touched: TouchedField, key: string): unknown => {
    const value: unknown = Object.hasOwn(raw, key) ? raw[key] : undefined;
    // Of what is frozen nothing can change, and a proxy may not stand in for its members.
    const isOpen = isPlainObject(value) && !Object.isFrozen(value);
    const member = touch(touched, key, !isOpen);
    mayHold ||= Array.isArray(value);
    return isOpen ? track(value, member) : value;
  };
  const write = (raw: JsonObject, touched: TouchedField, key: string, value: unknown) => {
    touch(touched, key, true);
    mayHold ||= isObject(value);
    setOwn(raw, key, release(value) as JsonValue);
  };

  const track = (raw: JsonObject, touched: TouchedField): JsonObject => {
    if (trackedBy.has(raw)) return raw;
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
    trackedBy.set(proxy, { raw, touched });
    return proxy;
  };

  return {
    draft: track(object, root),
    finish() {
      if (mayHold) releaseWithin(object, release, new WeakSet());
      return root;
    },
  };
}

/** Replaces what was taken from the draft and put into new values by its raw value. */
function releaseWithin(
  container: object,
  release: (value: unknown) => unknown,
  seen: WeakSet<object>,
): void {
  if (seen.has(container)) return;
  seen.add(container);
  for (const [key, value] of Object.entries(container)) {
    const raw = release(value);
    if (raw !== value) (container as Record<string, unknown>)[key] = raw;
    if (Array.isArray(raw) || isPlainObject(raw)) releaseWithin(raw, release, seen);
  }
}

/** Asked of every object by `await` and by `JSON.stringify`. */
const PROBES = new Set(["then", "toJSON"]);

/** What every object inherits, such as `hasOwnProperty`, is no member. */
function isMember(target: JsonObject, key: string | symbol): key is string {
  if (typeof key !== "string") return false;
  return Object.hasOwn(target, key) || !(key in target || PROBES.has(key));
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function isPlainObject(value: unknown): value is JsonObject {
  if (!isJsonObject(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
