import { KonvergeError, parseKey } from "@konverge/core";

/** An object of a controller, from the command line. */
export interface Target {
  readonly cluster: string;
  readonly controller: string;
  readonly namespace?: string;
  readonly name: string;
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
