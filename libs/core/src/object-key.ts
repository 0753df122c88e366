import { KonvergeError } from "./errors.ts";
import { NO_NAMESPACE } from "./no-namespace.ts";
import { resourceId } from "./resource-name.ts";

/** The unit of reconciliation: one object of one controller and cluster. Keys of different controllers never collide. */
export interface ObjectKey {
  readonly controller: string;
  readonly cluster: string;
  /** Plural, for example `deployments`. */
  readonly resource: string;
  /** API group; empty for the core group. */
  readonly group: string;
  /** Undefined for cluster-scoped objects. */
  readonly namespace?: string;
  readonly name: string;
}

/** Segments without characters to encode. `_` alone has a meaning only as a namespace, so other segments encode it. */
const PLAIN_KEY =
  /^(?!_\/)[\w!'()*~.-]+\/(?!_\/)[\w!'()*~.-]+\/(?!_\/)[\w!'()*~-]+(?:\.[\w!'()*~.-]+)?\/[\w!'()*~.-]+\/(?!_$)[\w!'()*~.-]+$/;

const FORM = "controller/cluster/resource.group/namespace/name";

/** Returns `controller/cluster/resource.group/namespace/name`, percent-encoded, with `_` for no namespace. */
export function formatKey(key: ObjectKey): string {
  const { controller, cluster, resource, namespace, name } = key;
  for (const [field, value] of Object.entries({ controller, cluster, resource, name })) {
    if (value === "")
      throw new KonvergeError("invalid_key", `${field} of the key must not be empty`);
  }
  if (namespace === "") {
    throw new KonvergeError("invalid_key", "namespace of the key must not be empty; omit it");
  }
  if (resource.includes(".")) {
    throw new KonvergeError(
      "invalid_key",
      `resource "${resource}" must not contain a dot; pass its group separately`,
    );
  }
  const segments = [controller, cluster, resourceId(key)].map(encodeSegment);
  segments.push(namespace === undefined ? NO_NAMESPACE : encodeSegment(namespace));
  segments.push(encodeSegment(name));
  return segments.join("/");
}

/** The inverse of {@link formatKey}. @throws KonvergeError `invalid_key`, with the segment. */
export function parseKey(text: string): ObjectKey {
  const segments = text.split("/");
  const [controller, cluster, type, namespace, name] = segments;
  if (segments.length !== 5 || !controller || !cluster || !type || !namespace || !name) {
    throw new KonvergeError("invalid_key", `key "${text}" is not of the form ${FORM}`);
  }
  // Most keys: each attempt parses one.
  const isPlain = PLAIN_KEY.test(text);
  const decode = (segment: string) => (isPlain ? segment : decodeSegment(segment, text));
  const decoded = decode(type);
  const dot = decoded.indexOf(".");
  const key: ObjectKey = {
    controller: decode(controller),
    cluster: decode(cluster),
    resource: dot === -1 ? decoded : decoded.slice(0, dot),
    group: dot === -1 ? "" : decoded.slice(dot + 1),
    ...(namespace === NO_NAMESPACE ? {} : { namespace: decode(namespace) }),
    name: decode(name),
  };
  // A key has exactly one text, because the text names a hash in Redis.
  if (!isPlain && formatKey(key) !== text) {
    throw new KonvergeError("invalid_key", `key "${text}" is not in the canonical form ${FORM}`);
  }
  return key;
}

function encodeSegment(segment: string): string {
  if (segment === NO_NAMESPACE) return "%5F";
  try {
    return encodeURIComponent(segment);
  } catch (error) {
    throw new KonvergeError("invalid_key", `"${segment}" is not well-formed text`, {
      cause: error,
    });
  }
}

function decodeSegment(segment: string, text: string): string {
  try {
    return decodeURIComponent(segment);
  } catch (error) {
    throw new KonvergeError(
      "invalid_key",
      `segment "${segment}" of key "${text}" is not percent-encoded`,
      { cause: error },
    );
  }
}
