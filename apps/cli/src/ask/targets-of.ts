import { defined, KonvergeError, parseKey } from "@konverge/core";

/** An object of a controller, from the command line. */
export interface Target {
  readonly cluster: string;
  readonly controller: string;
  readonly namespace?: string;
  readonly name: string;
}

/** A controller, a namespace or one object, from the command line. */
export interface Scope {
  readonly cluster: string;
  readonly controller?: string;
  readonly namespace?: string;
  readonly name?: string;
}

/**
 * Parses `[controller] [name]` with the flags `--namespace` and `--name`, or one complete key.
 * @throws KonvergeError `invalid_key`, or `invalid_request` for an object that is named twice
 */
export function scopeOf(
  controller: string | undefined,
  name: string | undefined,
  flags: { readonly cluster: string; readonly namespace?: string; readonly name?: string },
): Scope {
  const { cluster, namespace } = flags;
  const isKey = controller?.includes("/") === true;
  if ([isKey, name !== undefined, flags.name !== undefined].filter(Boolean).length > 1) {
    throw new KonvergeError(
      "invalid_request",
      "<name>: the object is named twice; use a key, an argument or --name",
    );
  }
  if (isKey && controller !== undefined) {
    const [target] = targetsOf([controller], flags);
    if (target !== undefined) return target;
  }
  return { cluster, ...defined({ controller, namespace, name: name ?? flags.name }) };
}

/**
 * Parses `<controller> <name...>` with the flag `--namespace`, or complete keys as `-o name` prints them.
 * @throws KonvergeError `invalid_key`, or `invalid_request` without an object
 */
export function targetsOf(
  [controller, ...names]: readonly [string, ...string[]],
  { cluster, namespace }: { readonly cluster: string; readonly namespace?: string | undefined },
): Target[] {
  if (controller.includes("/")) {
    return [controller, ...names].map((key) => {
      const { resource: _resource, group: _group, ...target } = parseKey(key);
      return target;
    });
  }
  if (names.length === 0) {
    throw new KonvergeError("invalid_request", "<name>: is required, unless <controller> is a key");
  }
  const place = namespace === undefined ? { cluster } : { cluster, namespace };
  return names.map((name) => ({ controller, ...place, name }));
}
