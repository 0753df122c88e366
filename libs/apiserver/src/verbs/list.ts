import { isJsonObject, parseJson, type JsonObject, type JsonValue } from "@konverge/core";
import {
  badRequest,
  expired,
  notFound,
  StatusError,
  tooLargeVersion,
} from "../errors/status-error.ts";
import { scanJson } from "../schema/json-scanner.ts";
import type { StoredObject } from "../storage/stored-object.ts";
import { answerObject, keyOf, viewOf, type Answer, type Call } from "./call.ts";
import { parseVersion, readListOptions, type ListOptions } from "./list-options.ts";
import { formatList } from "./list-text.ts";
import { readSelector } from "./selectors.ts";

const EXPIRED_TOKEN =
  "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/** GET of one object: newest, or not older than `resourceVersion`. */
export async function getObject(call: Call): Promise<Answer> {
  const { kind, name, table } = call;
  const floor = parseVersion(call.query.get("resourceVersion") ?? "", false);
  await untilVersion(call, floor ?? 0);
  const stored = table.get(keyOf(call, name));
  if (stored === undefined) throw notFound(kind, name);
  return answerObject(kind, stored);
}

/** GET of a collection. */
export async function listObjects(call: Call): Promise<Answer> {
  const { kind } = call;
  const options = readListOptions(call.query);
  const selector = readSelector(kind, call.query);
  const page = await choosePage(call, options);
  const matching = page.objects.filter(
    (stored) => selector === undefined || selector(viewOf(kind, stored).object),
  );
  const rest = matching.filter(({ key }) => page.after === undefined || key > page.after);
  const { limit } = options;
  // The watch cache, which serves version 0, has no pages.
  const isPaged = limit > 0 && rest.length > limit && options.resourceVersion !== "0";
  const shown = isPaged ? rest.slice(0, limit) : rest;
  const last = shown.at(-1);
  const metadata: JsonObject = { resourceVersion: String(page.version) };
  if (isPaged && last !== undefined) {
    metadata["continue"] = encodeToken({ version: page.version, after: last.key });
    if (selector === undefined) metadata["remainingItemCount"] = rest.length - limit;
  }
  return { code: 200, text: formatList(kind, shown, metadata) };
}

/** Returns the current objects of a collection, with selectors applied. */
export function selectObjects(call: Call): StoredObject[] {
  const selector = readSelector(call.kind, call.query);
  return call.table
    .list(prefixOf(call))
    .filter((stored) => selector === undefined || selector(viewOf(call.kind, stored).object));
}

/** Common prefix of the keys in a call's namespace. */
export const prefixOf = ({ kind, namespace }: Call): string =>
  kind.namespaced && namespace !== "" ? `${namespace}/` : "";

interface Page {
  readonly objects: readonly StoredObject[];
  readonly version: number;
  /** Key of the last object of the previous page. */
  readonly after: string | undefined;
}

async function choosePage(call: Call, options: ListOptions): Promise<Page> {
  const { state, table } = call;
  const { continueToken, resourceVersion, limit, versionMatch } = options;
  const wanted = parseVersion(resourceVersion, false);
  if (continueToken !== "") {
    if (wanted !== undefined && wanted !== 0) {
      throw badRequest("specifying resource version is not allowed when using continue");
    }
    const token = decodeToken(continueToken);
    // An inconsistent token continues with the current state.
    const version = token.version < 0 ? state.store.version : token.version;
    const objects = table.listAt(version, prefixOf(call));
    if (objects === undefined) throw expiredToken(token.after);
    return { objects, version, after: token.after };
  }
  await untilVersion(call, wanted ?? 0);
  const isExact =
    wanted !== undefined &&
    wanted !== 0 &&
    (versionMatch === "Exact" || (limit > 0 && versionMatch === ""));
  if (!isExact) {
    return { objects: table.list(prefixOf(call)), version: state.store.version, after: undefined };
  }
  const objects = table.listAt(wanted, prefixOf(call));
  if (objects === undefined) {
    throw expired("The provided resource version is too old to display a consistent list result.");
  }
  return { objects, version: wanted, after: undefined };
}

/**
 * Waits until the store has reached a version: a client may have one from another server of the same cluster.
 * @throws StatusError 504 if it does not arrive in time
 */
export async function untilVersion({ state }: Call, version: number): Promise<void> {
  const { store, freshnessLimitMs } = state;
  if (store.version >= version) return;
  const reached = await new Promise<boolean>((resolve) => {
    const finish = (result: boolean) => {
      clearTimeout(timer);
      stop();
      resolve(result);
    };
    const timer = setTimeout(() => finish(false), freshnessLimitMs);
    const stop = store.onChange(() => {
      if (store.version >= version) finish(true);
    });
  });
  if (!reached) throw tooLargeVersion(String(version), store.version);
}

interface Token {
  /** Version of the first page; -1 for a token without consistency. */
  readonly version: number;
  readonly after: string;
}

const encodeToken = ({ version, after }: Token): string =>
  Buffer.from(
    JSON.stringify({ v: "meta.k8s.io/v1", rv: version, start: `${after}\u0000` }),
  ).toString("base64url");

function decodeToken(text: string): Token {
  const refuse = (why: string) =>
    badRequest(`invalid continue token: continue key is not valid${why}`);
  const invalidByte =
    /[^A-Za-z0-9_-]/.exec(text)?.index ?? (text.length % 4 === 1 ? text.length - 1 : -1);
  if (invalidByte !== -1) throw refuse(`: illegal base64 data at input byte ${invalidByte}`);
  const decoded = Buffer.from(text, "base64url").toString("latin1");
  let token: JsonValue;
  try {
    token = parseJson(decoded);
  } catch {
    throw refuse(`: ${escapeControls(scanJson(decoded).error ?? "unexpected end of JSON input")}`);
  }
  const { v = "", rv, start = "" } = isJsonObject(token) ? token : {};
  if (v !== "meta.k8s.io/v1") {
    throw refuse(`: server does not recognize this encoded version ${String(v)}`);
  }
  if (typeof rv !== "number" || rv === 0) {
    throw refuse(": incorrect encoded start resourceVersion (version meta.k8s.io/v1)");
  }
  if (typeof start !== "string" || start === "") {
    throw refuse(": encoded start key empty (version meta.k8s.io/v1)");
  }
  return { version: rv, after: start.replace("\u0000", "") };
}

/** Go quotes control characters in its errors. */
const escapeControls = (text: string): string =>
  text.replaceAll(
    /[\u0080-\u009F]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

/** The response has a token that continues with the newest state, at the price of consistency. */
function expiredToken(after: string): StatusError {
  const error = expired(EXPIRED_TOKEN);
  return new ExpiredPage(error.message, encodeToken({ version: -1, after }));
}

class ExpiredPage extends StatusError {
  readonly #token: string;
  constructor(message: string, token: string) {
    super(410, "Expired", message);
    this.#token = token;
  }
  override toStatus(): JsonObject {
    return { ...super.toStatus(), metadata: { continue: this.#token } };
  }
}
