import { parseQuery, parseRequestUri, parseUrl, type GoUrl } from "../values/go-url.ts";
import { CelError, CelList, CelMap, Opaque } from "../values/value.ts";
import { global, member, type Overload } from "./declaration.ts";

const TYPE = "kubernetes.URL";
type Url = Opaque<GoUrl>;

function toUrl(text: string): Url {
  try {
    parseRequestUri(text);
    return new Opaque(TYPE, parseUrl(text));
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    throw new CelError(`URL parse error during conversion from string: ${error.message}`);
  }
}

function isUrl(text: string): boolean {
  try {
    parseRequestUri(text);
    return true;
  } catch (error) {
    if (error instanceof CelError) return false;
    throw error;
  }
}

/** Splits a host at its port; brackets around an address are removed. */
function splitHost(host: string): { readonly name: string; readonly port: string } {
  const [, name = host, port = ""] = /^([^]*):(\d*)$/.exec(host) ?? [];
  return { name: /^\[[^]*\]$/.test(name) ? name.slice(1, -1) : name, port };
}

function queryOf({ content }: Url): CelMap {
  const values = [...parseQuery(content.rawQuery)];
  return new CelMap(values.map(([name, list]) => [name, new CelList(list)] as const));
}

export const URLS: readonly Overload[] = [
  global("url", `string -> ${TYPE}`, toUrl),
  global("isURL", "string -> bool", isUrl),
  member("getScheme", `${TYPE} -> string`, ({ content }: Url) => content.scheme),
  member("getHost", `${TYPE} -> string`, ({ content }: Url) => content.host),
  member("getHostname", `${TYPE} -> string`, ({ content }: Url) => splitHost(content.host).name),
  member("getPort", `${TYPE} -> string`, ({ content }: Url) => splitHost(content.host).port),
  member("getEscapedPath", `${TYPE} -> string`, ({ content }: Url) => content.escapedPath),
  member("getQuery", `${TYPE} -> map(string, list(string))`, queryOf),
];
