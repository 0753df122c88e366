import { isIPv4, isIPv6 } from "node:net";
import { CelError } from "./value.ts";

/** The parts of a URL that rules can read, as Go's `net/url` returns them. */
export interface GoUrl {
  readonly scheme: string;
  readonly host: string;
  readonly escapedPath: string;
  readonly rawQuery: string;
  /** The URL in the form in which Go writes it; equal URLs have equal texts. */
  readonly text: string;
}

/** The characters other than letters, digits and `-_.~` that stay as they are in a part. */
const PLAIN = {
  fragment: "!()*$&+,/:;=?@",
  host: "!$&'()*+,;=:[]<>\"",
  path: "$&+,/:;=@",
  query: "",
  user: "$&+,;=",
  zone: "!$&'()*+,;=:[]<>\"",
} as const;
type Part = keyof typeof PLAIN;

const quote = (text: string) => JSON.stringify(text);

function isPlain(byte: number, part: Part): boolean {
  const character = String.fromCharCode(byte);
  return /[A-Za-z0-9\-_.~]/.test(character) || PLAIN[part].includes(character);
}

function escape(bytes: Buffer, part: Part): string {
  return Array.from(bytes, (byte) =>
    isPlain(byte, part)
      ? String.fromCharCode(byte)
      : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`,
  ).join("");
}

/** Decodes `%xx` to bytes. @throws CelError */
function unescape(text: string, part: Part): Buffer {
  const pieces: Buffer[] = [];
  for (const [piece, hex] of text.matchAll(/%([0-9A-Fa-f]{2})|%[^]{0,2}|[^%]+/g)) {
    if (hex !== undefined) pieces.push(decoded(piece, hex, part));
    else if (piece.startsWith("%")) throw badEscape(piece);
    else {
      if (part === "host" || part === "zone") checkHost(piece, part);
      pieces.push(Buffer.from(part === "query" ? piece.replaceAll("+", " ") : piece));
    }
  }
  return Buffer.concat(pieces);
}

const badEscape = (text: string) => new CelError(`invalid URL escape ${quote(text)}`);

function decoded(piece: string, hex: string, part: Part): Buffer {
  const byte = Number.parseInt(hex, 16);
  // A host escapes only bytes outside of ASCII; a zone, only what could be written plainly, and spaces.
  const isWrong =
    piece !== "%25" &&
    ((part === "host" && byte < 0x80) ||
      (part === "zone" && byte !== 0x20 && !isPlain(byte, "host")));
  if (isWrong) throw badEscape(piece);
  return Buffer.from([byte]);
}

function checkHost(text: string, part: Part): void {
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    if (code < 0x80 && !isPlain(code, part)) {
      throw new CelError(`invalid character ${quote(character)} in host name`);
    }
  }
}

function splitScheme(text: string): [string, string] {
  if (text.startsWith(":")) throw new CelError("missing protocol scheme");
  const [, scheme, rest = ""] = /^([A-Za-z][A-Za-z0-9+.-]*):([^]*)$/.exec(text) ?? [];
  return scheme === undefined ? ["", text] : [scheme.toLowerCase(), rest];
}

function cut(text: string, separator: string): [string, string | undefined] {
  const index = text.indexOf(separator);
  return index === -1
    ? [text, undefined]
    : [text.slice(0, index), text.slice(index + separator.length)];
}

function parseAuthority(scheme: string, authority: string): { host: string; user: string } {
  const at = authority.lastIndexOf("@");
  const host = parseHost(scheme, authority.slice(at + 1));
  if (at === -1) return { host, user: "" };
  const info = authority.slice(0, at);
  if (!/^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/.test(info)) {
    throw new CelError("net/url: invalid userinfo");
  }
  const [name, password] = cut(info, ":");
  const parts = password === undefined ? [name] : [name, password];
  return { host, user: `${parts.map((one) => escape(unescape(one, "user"), "user")).join(":")}@` };
}

function checkPort(text: string): void {
  if (!/^(?::\d*)?$/.test(text)) throw new CelError(`invalid port ${quote(text)} after host`);
}

function parseHost(scheme: string, host: string): string {
  const open = host.lastIndexOf("[");
  if (open > 0) throw new CelError("invalid IP-literal");
  if (open === 0) return parseLiteral(host);
  const first = host.indexOf(":");
  if (first !== -1) {
    const isStrict = scheme === "http" || scheme === "https";
    checkPort(host.slice(isStrict ? first : host.lastIndexOf(":")));
  }
  return unescape(host, "host").toString();
}

function parseLiteral(host: string): string {
  const close = host.lastIndexOf("]");
  if (close === -1) throw new CelError("missing ']' in host");
  const port = host.slice(close + 1);
  checkPort(port);
  const inside = host.slice(1, close);
  const zone = inside.indexOf("%25");
  const address =
    zone === -1
      ? unescape(inside, "host").toString()
      : `${unescape(inside.slice(0, zone), "host").toString()}${unescape(inside.slice(zone), "zone").toString()}`;
  if (isIPv4(address)) throw new CelError("invalid IP-literal");
  if (!isIPv6(address)) {
    throw new CelError(`invalid host: ParseAddr(${quote(address)}): unable to parse IP`);
  }
  return `[${address}]${port}`;
}

/** Keeps a path that is a valid encoding as it is written. */
function escapePath(raw: string): string {
  const bytes = unescape(raw, "path");
  return /^[A-Za-z0-9\-_.~!$&'()*+,;=:@[\]%/]*$/.test(raw) ? raw : escape(bytes, "path");
}

function parse(text: string, isRequest: boolean): GoUrl {
  // oxlint-disable-next-line no-control-regex -- the bytes that Go rejects
  if (/[\u0000-\u001F\u007F]/.test(text)) {
    throw new CelError("net/url: invalid control character in URL");
  }
  if (text === "" && isRequest) throw new CelError("empty url");
  if (text === "*") return { scheme: "", host: "", escapedPath: "*", rawQuery: "", text };
  const [scheme, all] = splitScheme(text);
  const [rest, query] = cut(all, "?");
  const rawQuery = query ?? "";
  const end = query === undefined ? "" : `?${query}`;
  const start = scheme === "" ? "" : `${scheme}:`;
  if (!rest.startsWith("/")) {
    if (scheme !== "") {
      return { scheme, host: "", escapedPath: "", rawQuery, text: `${start}${rest}${end}` };
    }
    if (isRequest) throw new CelError("invalid URI for request");
    if (cut(rest, "/")[0].includes(":")) {
      throw new CelError("first path segment in URL cannot contain colon");
    }
  }
  const hasAuthority =
    rest.startsWith("//") && (scheme !== "" || (!isRequest && !rest.startsWith("///")));
  const [authority, path] = hasAuthority ? splitAuthority(rest) : ["", rest];
  const { host, user } = parseAuthority(scheme, authority);
  const escapedPath = escapePath(path);
  const slashes = hasAuthority && `${host}${user}${path}` !== "" ? "//" : "";
  return {
    scheme,
    host,
    escapedPath,
    rawQuery,
    text: `${start}${slashes}${user}${escape(Buffer.from(host), "host")}${escapedPath}${end}`,
  };
}

function splitAuthority(rest: string): [string, string] {
  const slash = rest.indexOf("/", 2);
  return slash === -1 ? [rest.slice(2), ""] : [rest.slice(2, slash), rest.slice(slash)];
}

function parseOrFail(text: string, isRequest: boolean): GoUrl {
  try {
    return parse(text, isRequest);
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    throw new CelError(`parse ${quote(text)}: ${error.message}`);
  }
}

/** Parses an absolute URL or path, without a fragment, as Go's `url.ParseRequestURI` does. @throws CelError */
export const parseRequestUri = (text: string): GoUrl => parseOrFail(text, true);

/** Parses a URL as Go's `url.Parse` does. @throws CelError */
export function parseUrl(text: string): GoUrl {
  const [before, fragment = ""] = cut(text, "#");
  const url = parseOrFail(before, false);
  if (fragment === "") return url;
  return { ...url, text: `${url.text}#${escape(unescape(fragment, "fragment"), "fragment")}` };
}

/** Returns the values of a query by name; pairs that are not valid are left out. */
export function parseQuery(query: string): Map<string, string[]> {
  const values = new Map<string, string[]>();
  for (const pair of query.split("&")) {
    if (pair === "" || pair.includes(";")) continue;
    const parts = decodePair(pair);
    if (parts === undefined) continue;
    const [name, value] = parts;
    const known = values.get(name) ?? [];
    known.push(value);
    values.set(name, known);
  }
  return values;
}

function decodePair(pair: string): [string, string] | undefined {
  const [name, value = ""] = cut(pair, "=");
  try {
    return [unescape(name, "query").toString(), unescape(value, "query").toString()];
  } catch (error) {
    if (error instanceof CelError) return undefined;
    throw error;
  }
}
