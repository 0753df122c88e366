import { KonvergeError, parseKey } from "@konverge/core";

/** An object of a controller, as it was typed. */
export interface Target {
  readonly cluster: string;
  readonly controller: string;
  readonly namespace?: string;
  readonly name: string;
}

/**
 * `<controller> <name...>` with the flag `--namespace`, or keys as `-o name` prints them, which say it all.
 * @throws KonvergeError `invalid_key`, or `invalid_request` when no object is named
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
    throw new KonvergeError("invalid_request", "<name>: say which object, or give its key");
  }
  const place = namespace === undefined ? { cluster } : { cluster, namespace };
  return names.map((name) => ({ controller, ...place, name }));
}
