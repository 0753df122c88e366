export interface RedisAddress {
  readonly host: string;
  readonly port: number;
}

/** What a Redis URL says. Secrets are decoded; never show it whole. */
export type RedisUrl =
  | { readonly kind: "single"; readonly url: string }
  | (RedisNodes & { readonly kind: "cluster" })
  /** `name` is the primary's, as the Sentinels know it. */
  | (RedisNodes & { readonly kind: "sentinel"; readonly name: string; readonly db: number });

interface RedisNodes {
  readonly nodes: readonly RedisAddress[];
  readonly username?: string;
  readonly password?: string;
  readonly tls: boolean;
}

const FORMS =
  "write redis://host:port, redis+cluster://host:port,host:port or redis+sentinel://host:port,host:port/name (rediss for TLS), or unix:///path";
const SEVERAL = /^redis(s?)\+(cluster|sentinel):\/\/(?:([^@/]*)@)?([^@/?#]+)(?:\/([^?#]*))?$/;
const DEFAULT_PORT = { cluster: 6379, sentinel: 26_379 } as const;

/**
 * Reads the forms of a Redis URL; what `redis://`, `rediss://` and `unix://` say is left to the client.
 * @throws RangeError that says what to write instead, without the URL, which may hold a password
 */
export function parseRedisUrl(url: string): RedisUrl {
  if (!isDecodable(url)) throw new RangeError("write a % that is meant as such as %25");
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
      throw new RangeError("a Redis Cluster has one database; write nothing behind the hosts");
    return { kind, ...common, nodes: addressesOf(hosts, DEFAULT_PORT.cluster) };
  }
  if (name === "" || more.length > 0 || !/^\d{1,5}$/.test(db)) {
    throw new RangeError(
      "behind the Sentinels write the name of the primary, for example redis+sentinel://host:26379/mymaster",
    );
  }
  const nodes = addressesOf(hosts, DEFAULT_PORT.sentinel);
  return { kind: "sentinel", ...common, nodes, name, db: Number(db) };
}

/** Where Redis is, for people: without what the URL holds of secrets, in whatever place. */
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

/** A password with a bare % would end the process inside of the Redis client, without saying which setting it was. */
function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
