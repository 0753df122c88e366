export interface RedisAddress {
  readonly host: string;
  readonly port: number;
}

/** A parsed Redis URL. Contains decoded secrets; never log it. */
export type RedisUrl =
  | { readonly kind: "single"; readonly url: string }
  | (RedisNodes & { readonly kind: "cluster" })
  /** `name` is the Sentinels' name of the primary. */
  | (RedisNodes & { readonly kind: "sentinel"; readonly name: string; readonly db: number });

interface RedisNodes {
  readonly nodes: readonly RedisAddress[];
  readonly username?: string;
  readonly password?: string;
  readonly tls: boolean;
}

const FORMS =
  "use redis://host:port, redis+cluster://host:port,host:port or redis+sentinel://host:port,host:port/name (rediss for TLS), or unix:///path";
const SEVERAL = /^redis(s?)\+(cluster|sentinel):\/\/(?:([^@/]*)@)?([^@/?#]+)(?:\/([^?#]*))?$/;
const DEFAULT_PORT = { cluster: 6379, sentinel: 26_379 } as const;

/**
 * Parses a Redis URL. `redis://`, `rediss://` and `unix://` URLs are left to the client.
 * @throws RangeError with the right form, without the URL, which may contain a password
 */
export function parseRedisUrl(url: string): RedisUrl {
  if (!isDecodable(url)) throw new RangeError("encode a literal % as %25");
  if (/^(rediss?|unix):\/\//.test(url)) {
    if (!URL.canParse(url)) throw new RangeError(FORMS);
    return { kind: "single", url };
  }
  const match = SEVERAL.exec(url);
  if (match === null) throw new RangeError(FORMS);
  const [, s = "", kind = "", user, hosts = "", path = ""] = match;
  const [username = "", ...rest] = user?.split(":") ?? [];
  const password = rest.join(":");
  const [name = "", db = "0", ...more] = path.split("/").map(decodeURIComponent);
  const common = {
    tls: s !== "",
    ...(username === "" ? {} : { username: decodeURIComponent(username) }),
    ...(password === "" ? {} : { password: decodeURIComponent(password) }),
  };
  if (kind === "cluster") {
    if (path !== "")
      throw new RangeError("a Redis Cluster has one database; remove the path after the hosts");
    return { kind, ...common, nodes: addressesOf(hosts, DEFAULT_PORT.cluster) };
  }
  if (name === "" || more.length > 0 || !/^\d{1,5}$/.test(db)) {
    throw new RangeError(
      "append the name of the primary to the Sentinels, for example redis+sentinel://host:26379/mymaster",
    );
  }
  const nodes = addressesOf(hosts, DEFAULT_PORT.sentinel);
  return { kind: "sentinel", ...common, nodes, name, db: Number(db) };
}

/** Returns the address of Redis for display, without any secrets of the URL. */
export function showRedisUrl(url: string): string {
  try {
    const parsed = parseRedisUrl(url);
    if (parsed.kind !== "single") {
      const scheme = `redis${parsed.tls ? "s" : ""}+${parsed.kind}`;
      return `${scheme}://${parsed.nodes.map(({ host, port }) => `${host}:${port}`).join(",")}`;
    }
  } catch {
    return "its URL";
  }
  const { protocol, host, pathname } = new URL(url);
  return host === "" ? `${protocol}//${pathname}` : `${protocol}//${host}`;
}

function addressesOf(hosts: string, defaultPort: number): RedisAddress[] {
  return hosts.split(",").map((text) => {
    const [, bracketed, plain, digits] =
      /^(?:\[([^\]]+)\]|([^:[\]\s]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
    const host = bracketed ?? plain;
    const port = digits === undefined ? defaultPort : Number(digits);
    if (host === undefined || port < 1 || port > 65_535) throw new RangeError(FORMS);
    return { host, port };
  });
}

/** A password with a bare % would crash the process inside the Redis client, without naming the setting. */
function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
