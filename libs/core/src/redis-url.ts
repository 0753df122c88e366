export interface RedisAddress {
  readonly host: string;
  readonly port: number;
}

/** A parsed Redis URL. Contains decoded secrets; never log it. */
export type RedisUrl = { readonly files: RedisFiles } & (
  | { readonly kind: "single"; readonly url: string }
  | (RedisNodes & { readonly kind: "cluster" })
  /** `name` is the Sentinels' name of the primary. */
  | (RedisNodes & { readonly kind: "sentinel"; readonly name: string; readonly db: number })
);

/** Paths of files with credentials, from the parameters of a URL. They may change while a process runs. */
export interface RedisFiles {
  /** Certificates of the authorities that signed that of the server, as PEM. */
  readonly ca?: string;
  /** The certificate of the client and its key, as PEM. */
  readonly cert?: string;
  readonly key?: string;
  readonly passwordFile?: string;
  readonly sentinelPasswordFile?: string;
}

const FILES = ["ca", "cert", "key", "passwordFile", "sentinelPasswordFile"] as const;

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
 * Parses a Redis URL. The parameters `ca`, `cert`, `key`, `passwordFile` and `sentinelPasswordFile` are paths. `redis://`, `rediss://` and `unix://` URLs are left to the client.
 * @throws RangeError with the right form, without the URL, which may contain a password
 */
export function parseRedisUrl(whole: string): RedisUrl {
  if (!isDecodable(whole)) throw new RangeError("encode a literal % as %25");
  const { url, files } = withoutFiles(whole);
  if (/^(rediss?|unix):\/\//.test(url)) {
    if (!URL.canParse(url)) throw new RangeError(FORMS);
    assertFiles(files, { tls: url.startsWith("rediss:"), isSentinel: false });
    return { kind: "single", url, files };
  }
  const match = SEVERAL.exec(url);
  if (match === null) throw new RangeError(FORMS);
  const [, s = "", kind = "", user, hosts = "", path = ""] = match;
  const [username = "", ...rest] = user?.split(":") ?? [];
  const password = rest.join(":");
  const [name = "", db = "0", ...more] = path.split("/").map(decodeURIComponent);
  assertFiles(files, { tls: s !== "", isSentinel: kind === "sentinel" });
  const common = {
    files,
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

/** Takes the parameters that name files from a URL. */
function withoutFiles(whole: string): { readonly url: string; readonly files: RedisFiles } {
  // The user and password of nodes may contain a question mark.
  const [, url = "", query] = /^(rediss?\+\w+:\/\/[^@/]*@[^?]*|[^?]*)\??(.*)$/s.exec(whole) ?? [];
  const parameters = new URLSearchParams(query ?? "");
  const files: { -readonly [Name in keyof RedisFiles]: RedisFiles[Name] } = {};
  for (const name of FILES) {
    const path = parameters.get(name);
    parameters.delete(name);
    if (path === "") throw new RangeError(`the parameter ${name} must be the path of a file`);
    if (path !== null) files[name] = path;
  }
  const rest = parameters.toString();
  return { url: rest === "" ? url : `${url}?${rest}`, files };
}

function assertFiles(
  { ca, cert, key, sentinelPasswordFile }: RedisFiles,
  { tls, isSentinel }: { readonly tls: boolean; readonly isSentinel: boolean },
): void {
  if (!tls && (ca ?? cert ?? key) !== undefined)
    throw new RangeError("the parameters ca, cert and key need TLS; use rediss");
  if ((cert === undefined) !== (key === undefined))
    throw new RangeError("set both parameters cert and key, or neither");
  if (!isSentinel && sentinelPasswordFile !== undefined)
    throw new RangeError("the parameter sentinelPasswordFile is for redis+sentinel URLs");
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
